import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import type { Diagnostics } from '../../features/diagnostics/check.ts';
import { defined, indentedJson } from '../../json.ts';
import { type JsonSchema, withDoc } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

const NAMES: JsonSchema = { type: 'array', items: { type: 'string' } };
const REPORT: JsonSchema = {
  type: 'object',
  required: ['last_update', 'checks'],
  additionalProperties: false,
  properties: {
    last_update: {
      description: 'RFC 3339, of the last complete run; the epoch before the first.',
      type: 'string',
      pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
    },
    checks: {
      type: 'array',
      items: {
        type: 'object',
        required: ['description', 'passed', 'fixes', 'id', 'category', 'mute'],
        additionalProperties: false,
        properties: {
          description: { description: 'Markdown.', type: 'string', minLength: 1 },
          passed: { type: 'boolean' },
          fixes: {
            type: 'array',
            items: {
              type: 'object',
              required: ['description'],
              properties: { description: { type: 'string' }, url: { type: 'string' } },
            },
          },
          id: { description: '`CHECK`, or `CHECK:sub` for one of several results.', type: 'string' },
          category: { type: 'string' },
          mute: { description: 'Muted by the setting `diagnostics.mutedChecks`.', type: 'boolean' },
          documentation: {
            description: 'URL of the documentation of the check; absent if no documentation is installed.',
            type: 'string',
            format: 'uri',
          },
        },
      },
    },
  },
};

/** Query parameters; one that is given more than once is an array. */
type Query = Readonly<Record<string, string | string[] | undefined>>;

/** The port of the diagnostics routes. */
export interface DiagnosticsPort {
  diagnostics: Diagnostics;
}

/** Registers `/v1/diagnostic_*`: the checks of this desktop, and their results. */
export function diagnosticsRoutes(app: FastifyInstance, { diagnostics }: DiagnosticsPort): void {
  app.get(
    '/v1/diagnostic_categories',
    withDoc({
      scope: 'read',
      summary: 'Categories of checks',
      replies: { 200: { description: 'always', body: 'json', schema: NAMES, example: diagnostics.categories() } },
    }),
    (_request, reply) => {
      reply.type(JSON_TYPE).send(indentedJson(diagnostics.categories()));
    },
  );

  app.get<{ Querystring: Query }>(
    '/v1/diagnostic_ids',
    withDoc({
      scope: 'read',
      summary: 'Checks of a category, including those that do not apply here',
      query: { category: { description: 'Name of the category (case-sensitive)', required: true } },
      replies: {
        200: { description: 'the category exists', body: 'json', schema: NAMES },
        400: { description: 'no category given', body: 'text', example: 'diagnostic_ids: no category specified' },
        404: { description: 'no such category', body: 'text', example: 'No diagnostic checks found in category X' },
      },
    }),
    ({ query }, reply) => {
      const category = firstOf(query.category);
      if (category === undefined) throw new RdError('ERR_BODY_INVALID', 'diagnostic_ids: no category specified');
      const ids = diagnostics.ids(category);
      if (ids === undefined) {
        throw new RdError('ERR_NOT_FOUND', `No diagnostic checks found in category ${category}`);
      }
      reply.type(JSON_TYPE).send(indentedJson(ids));
    },
  );

  app.get<{ Querystring: Query }>(
    '/v1/diagnostic_checks',
    withDoc({
      scope: 'read',
      summary: 'Results of the checks that apply here',
      query: {
        category: { description: 'Only this category' },
        id: { description: 'Only this check with all of its results, or only this result' },
        checkID: { description: 'Same as `id`, which takes precedence' },
      },
      replies: { 200: { description: 'always; without checks when nothing matches', body: 'json', schema: REPORT } },
    }),
    ({ query }, reply) => {
      const category = firstOf(query.category);
      const id = firstOf(query.id) ?? firstOf(query.checkID);
      const filter = { ...defined({ category, id }) };
      reply.type(JSON_TYPE).send(indentedJson(diagnostics.report(filter)));
    },
  );

  app.post(
    '/v1/diagnostic_checks',
    withDoc({
      scope: 'plan',
      summary: 'Run all checks that apply here, and wait for them',
      replies: { 200: { description: 'always', body: 'json', schema: REPORT } },
    }),
    async (_request, reply) => reply.type(JSON_TYPE).send(indentedJson(await diagnostics.runAll())),
  );
}

/** Returns the first value given; an empty one counts as absent. */
function firstOf(value: string | string[] | undefined): string | undefined {
  return [value].flat()[0] || undefined;
}

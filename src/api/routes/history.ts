import type { FastifyInstance } from 'fastify';
import { indentedJson } from '../../json.ts';
import type { ApiContext } from '../context.ts';
import { documented, type JsonSchema } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

const CHANGE: JsonSchema = {
  type: 'object',
  required: ['path'],
  properties: {
    path: { description: 'As in plans.', type: 'string' },
    key: { type: 'string' },
    before: { description: 'Absent where there was none.' },
    after: { description: 'Absent where there is none.' },
    source: {
      description: 'Where the profile asks for it.',
      type: 'object',
      required: ['file', 'line'],
      properties: { file: { type: 'string' }, line: { type: 'integer' } },
    },
  },
};

const ENTRY: JsonSchema = {
  type: 'object',
  required: ['generation', 'at', 'by', 'changes'],
  properties: {
    generation: { type: 'integer' },
    at: { type: 'string' },
    by: { type: 'object', required: ['how'], properties: { how: { type: 'string' } } },
    changes: { type: 'array', items: CHANGE },
    outcome: {
      description: 'Absent while the backend converges.',
      type: 'object',
      required: ['result', 'at'],
      properties: { result: { type: 'string' }, at: { type: 'string' }, reason: { type: 'string' } },
    },
  },
};

const DOC = documented({
  scope: 'read',
  summary: 'List the changes of settings, power, port forwards and extensions',
  description: 'Oldest first; secrets are masked. `rdctl history -o json` prints the same document.',
  replies: {
    200: {
      description: 'always',
      body: 'json',
      schema: {
        type: 'object',
        required: ['kind', 'formatVersion', 'entries'],
        properties: {
          kind: { const: 'History' },
          formatVersion: { const: 1 },
          entries: { type: 'array', items: ENTRY },
        },
      },
    },
  },
});

/** `GET /v2/history`: who changed what, and what became of it. */
export function historyRoutes(app: FastifyInstance, { history }: Pick<ApiContext, 'history'>): void {
  app.get('/v2/history', DOC, async (_request, reply) => {
    const document = { kind: 'History', formatVersion: 1, entries: await history.entries() };
    return reply.type(JSON_TYPE).send(indentedJson(document));
  });
}

import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { bytesOf, settingsPayload } from '../body.ts';
import type { ApiContext } from '../context.ts';
import { documented, type JsonSchema } from '../route-doc.ts';
import { PAGES } from '../transient-settings.ts';
import { JSON_TYPE, TEXT_TYPE, TEXTS } from '../wire-texts.ts';

/** The record, or any part of it. */
function recordSchema(whole: boolean): JsonSchema {
  const section = (properties: Record<string, JsonSchema>): JsonSchema => ({
    type: 'object',
    ...(whole ? { required: Object.keys(properties) } : {}),
    properties,
  });
  return section({
    noModalDialogs: { description: 'No window may ask anything.', type: 'boolean' },
    preferences: section({
      navItem: section({
        current: { description: 'Page that is shown.', enum: PAGES },
        currentTabs: {
          description: 'Tab that is shown on each page. Which tabs there are depends on the system.',
          type: 'object',
          propertyNames: { enum: PAGES },
          additionalProperties: { type: 'string' },
        },
      }),
    }),
  });
}

const GET_DOC = documented({
  summary: 'What the windows of the application remember while it runs',
  replies: { 200: { description: 'always', body: 'json', schema: recordSchema(true) } },
});
const PUT_DOC = documented({
  summary: 'Change what the windows of the application remember',
  description: 'Kept in memory until the service stops. Members that are left out stay.',
  body: { description: 'Any part of the record', required: true, schema: recordSchema(false) },
  replies: {
    202: { description: 'accepted', body: 'text', example: TEXTS.transientUpdated },
    400: { description: 'no settings, or bad ones: a heading and a line each', body: 'text' },
  },
});

/** `/v1/transient_settings`: for clients with windows; this service has none and only keeps the record. */
export function transientSettingsRoutes(app: FastifyInstance, { transient }: ApiContext): void {
  app.get('/v1/transient_settings', GET_DOC, (_request, reply) => {
    reply.type(JSON_TYPE).send(`${JSON.stringify(transient.read(), null, 2)}\n`);
  });

  app.put('/v1/transient_settings', PUT_DOC, (request, reply) => {
    const update = transient.update(settingsPayload(bytesOf(request)));
    if (update.kind === 'refused') {
      throw new RdError('ERR_SETTINGS_INVALID', [TEXTS.transientErrors, ...update.lines].join('\n'));
    }
    const text = update.kind === 'changed' ? TEXTS.transientUpdated : TEXTS.transientUnchanged;
    reply.code(202).type(TEXT_TYPE).send(text);
  });
}

import type { FastifyInstance } from 'fastify';
import { RdError } from '../../errors.ts';
import { indentedJson } from '../../json.ts';
import type { Kept } from '../../plan/kept.gen.ts';
import type { Watch } from '../../service/watch/watch.ts';
import { schemaOf, withDoc } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

const LIST_DOC = withDoc({
  scope: 'read',
  summary: 'List the kept profiles and what differs from them',
  description: 'The same list as `kept` in the status. A profile is kept by `POST /v2/apply` with `keep`.',
  replies: {
    200: {
      description: 'always',
      body: 'json',
      schema: schemaOf('Kept'),
    },
  },
});

const RELEASE_DOC = withDoc({
  scope: 'write',
  summary: 'Stop keeping a profile',
  description: 'Settings stay as they are; they are no longer compared with it.',
  query: { name: { description: '`metadata.name` of the profile', required: true } },
  replies: {
    204: { description: 'it is no longer kept', body: 'none' },
    400: { description: 'no name, or more than one', body: 'json', schema: schemaOf('Error') },
    404: { description: 'no profile of this name is kept', body: 'json', schema: schemaOf('Error') },
    500: { description: 'the change cannot be stored; it is still kept', body: 'json', schema: schemaOf('Error') },
  },
});

/** The port of the kept-profile routes. */
export interface KeptPort {
  watch: Pick<Watch, 'status' | 'release'>;
}

/** Registers `/v2/kept`: the profiles that the service keeps. */
export function keptRoutes(app: FastifyInstance, { watch }: KeptPort): void {
  app.get('/v2/kept', LIST_DOC, (_request, reply) => {
    const document: Kept = { kind: 'Kept', formatVersion: 1, kept: watch.status() };
    reply.type(JSON_TYPE).send(indentedJson(document));
  });

  app.delete<{ Querystring: { name?: string | string[] } }>('/v2/kept', RELEASE_DOC, async ({ query }, reply) => {
    const { name } = query;
    if (typeof name !== 'string') throw new RdError('ERR_BODY_INVALID', 'name must be given, once');
    if (await watch.release(name)) return reply.code(204).send();
    const kept = watch.status().map((each) => each.name);
    throw new RdError('ERR_NOT_FOUND', `No profile ${JSON.stringify(name)} is kept.`, {
      advice: kept.length === 0 ? 'None is kept.' : `Kept: ${kept.join(', ')}.`,
    });
  });
}

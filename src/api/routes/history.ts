import type { FastifyInstance } from 'fastify';
import { indentedJson } from '../../json.ts';
import type { History } from '../../plan/history.gen.ts';
import type { HistoryEntry } from '../../plan/history.ts';
import { schemaOf, withDoc } from '../route-doc.ts';
import { JSON_TYPE } from '../wire-texts.ts';

const DOC = withDoc({
  scope: 'read',
  summary: 'List the changes of settings, power, port forwards and extensions',
  description: 'Oldest first; secrets are masked. `rdctl history -o json` prints the same document.',
  replies: {
    200: {
      description: 'always',
      body: 'json',
      schema: schemaOf('History'),
    },
  },
});

/** The port of the history route. */
export interface HistoryPort {
  /** Returns every recorded change, oldest first. Throws `ERR_IO`. */
  history: { entries(): Promise<HistoryEntry[]> };
}

/** Registers `GET /v2/history`: all changes, with their authors and outcomes. */
export function historyRoutes(app: FastifyInstance, { history }: HistoryPort): void {
  app.get('/v2/history', DOC, async (_request, reply) => {
    const document: History = { kind: 'History', formatVersion: 1, entries: await history.entries() };
    return reply.type(JSON_TYPE).send(indentedJson(document));
  });
}

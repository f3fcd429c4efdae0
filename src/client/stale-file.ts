import { COMPATIBLE } from '../product.ts';
import type { Connection } from './connection.ts';

/**
 * `/home/x/app-engine.json is stale: the process 12 that wrote it does not listen there any more`; undefined without a
 * file.
 */
export function staleText({ file, pid, reached }: Connection): string | undefined {
  if (file === undefined || reached.by === 'word') return undefined;
  const who = pid === undefined ? 'what wrote it' : `the process that wrote it (pid ${pid})`;
  return `${file} is stale: ${who} does not listen there any more`;
}

/** Advice for a missing or wrong listener. */
export function staleAdvice(connection: Connection): string {
  const stale = staleText(connection);
  if (stale === undefined) return 'Start it with `rdctl start`.';
  const other = connection.foreign ? `Start ${COMPATIBLE.productName}, or a service of ours` : 'Start one';
  return `${stale}. ${other} with \`rdctl start\`.`;
}

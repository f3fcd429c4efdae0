import { RdError } from '../../errors.ts';
import { COMPATIBLE } from '../../product.ts';
import { createClient } from '../client.ts';
import { discover } from '../discovery.ts';
import type { Caller } from '../session/home.ts';

/** Milliseconds that the application has to answer. */
const LOOK_MS = 2000;

/**
 * Notes on stderr that the compatible application runs, for a command that reads only data of rdctl and would otherwise seem to describe that
 * application. Silent if our service runs, or if nothing answers: that application leaves its connection file behind. Starts nothing, and never
 * throws.
 * @param what the abilities and limits of the command, as sentences.
 */
export async function noteOtherApplication(
  { globals, io }: Pick<Caller, 'globals' | 'io'>,
  what: string,
): Promise<void> {
  const connection = await discover(globals, io.env, io.platform, { signal: () => io.signal }).catch(ignoreKnown);
  if (!connection?.foreign) return;
  const answer = await createClient(connection)
    .backendState({ timeoutMs: LOOK_MS, signal: io.signal })
    .catch(ignoreKnown);
  if (!answer) return;
  const where = connection.file === undefined ? '' : ` (${connection.file})`;
  io.err(`notice: ${COMPATIBLE.productName} is running${where}. ${what}\n`);
}

function ignoreKnown(error: unknown): undefined {
  if (!(error instanceof RdError)) throw error;
}

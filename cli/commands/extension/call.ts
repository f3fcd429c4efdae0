import { createClient } from '../../../src/client/client.ts';
import type { ExtensionReply, installExtension } from '../../../src/client/extensions.ts';
import { exactArguments } from '../../arguments/arguments.ts';
import type { Invocation, Io } from '../../command.ts';
import { passingLine } from '../../views/passing-line.ts';
import { plainText } from '../../views/value.ts';

interface Change {
  /** How the line on stdout begins: `Installing`. */
  word: string;
  /** Shown on a terminal while waiting. */
  meanwhile: string;
  call: typeof installExtension;
  /** Shown when nothing changed: `is already installed`. */
  already: string;
}

/** Prints `Installing image ID: ANSWER` to stdout, or the status as JSON there and the answer on stderr. */
export async function changeExtension(
  { word, meanwhile, call, already }: Change,
  { args, io, connect }: Pick<Invocation, 'args' | 'io' | 'connect'>,
): Promise<number> {
  exactArguments(args, 1);
  const [id = ''] = args;
  const client = createClient(await connect());
  const line = passingLine(io);
  line.draw(`${meanwhile} ${plainText(id)} …`);
  const reply = await call(client, id, { signal: io.signal }).finally(line.clear);
  if (reply.status < 200 || reply.status > 299) return refused(reply, io);
  io.out(`${word} image ${id}: ${reply.text}\n`);
  if (reply.status === 204) io.err(`note: nothing to do, ${plainText(id)} ${already}\n`);
  for (const clause of reply.leftOut) io.err(`note: ${plainText(clause)}\n`);
  return 0;
}

/** The JSON reply of Rancher Desktop's `rdctl`. `quiet`: without the answer. */
export function refused({ status, statusText, text, reason, note }: ExtensionReply, io: Io, quiet = false): number {
  io.out(`${JSON.stringify({ message: `${status} ${statusText}` })}\n`);
  if (text !== '' && !quiet) io.err(`${text}\n`);
  if (reason !== undefined && !quiet && !text.includes(reason)) io.err(`reason: ${plainText(reason)}\n`);
  if (note !== undefined) io.err(`${note}\n`);
  return 1;
}

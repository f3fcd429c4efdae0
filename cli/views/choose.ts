import type { Io } from '../command.ts';
import { humanView } from './human.ts';
import { jsonView } from './json.ts';
import type { View } from './view.ts';

/** `-o` of every command with two views. */
export const OUTPUT_FLAG = {
  type: 'string',
  short: 'o',
  summary: 'Format of the result',
  values: ['text', 'json'],
} as const;

/** The view for `-o`; text by default. */
export function viewFor(output: string | undefined, io: Io): View {
  return output === 'json' ? jsonView(io) : humanView(io);
}

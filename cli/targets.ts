import type { Connection } from '../src/client/connection.ts';
import { RdError } from '../src/errors.ts';
import { COMPATIBLE } from '../src/product.ts';
import type { GlobalFlags, Io } from './command.ts';

/** Of commands that change more than single settings: names the application that was only found by looking around. */
export const TARGET_FLAG = {
  type: 'string',
  summary: `Act on the ${COMPATIBLE.productName} that was found`,
  values: [COMPATIBLE.target],
} as const;

/** True where somebody has said that an application that is not ours is meant (design: "Identity and targets"). */
function names(target: string | undefined, globals: GlobalFlags, io: Io): boolean {
  return Boolean(target || globals['config-path'] || io.env.RDCTL_CONFIG_PATH || io.env.RDCTL_COMPAT);
}

/** Refuses to change what nobody has named. `command` is the way to name it. Throws `ERR_WRONG_TARGET`. */
export function requireNamed(
  command: string,
  { file, host, port }: Connection,
  target: string | undefined,
  { globals, io }: { globals: GlobalFlags; io: Io },
): void {
  if (names(target, globals, io)) return;
  const where = file === undefined ? `at ${host}:${port}` : `through ${file}`;
  throw new RdError('ERR_WRONG_TARGET', `what runs is ${COMPATIBLE.productName}, found ${where}`, {
    advice: `If it is meant, say so: rdctl ${command} --target ${COMPATIBLE.target}`,
  });
}

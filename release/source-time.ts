import { execFileSync } from 'node:child_process';

/**
 * The time in packages, in seconds since 1970: `SOURCE_DATE_EPOCH`, or that of the commit, so that two builds are the same bytes.
 * @throws Error when there is neither.
 */
export function sourceTime(env: NodeJS.ProcessEnv = process.env): number {
  const text =
    env.SOURCE_DATE_EPOCH ??
    execFileSync('git', ['log', '-1', '--format=%ct'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  if (/^\d+$/.test(text)) return Number(text);
  throw new Error('SOURCE_DATE_EPOCH is not a number of seconds since 1970');
}

import type { Io } from '../../command.ts';
import { jsonText } from '../../views/text.ts';

/** The result of `rdctl upgrade`. */
export interface UpgradeReport {
  /** `current`, `older` and `prerelease` mean that there is nothing to install; `available` is the result of --check. */
  outcome: 'current' | 'older' | 'prerelease' | 'available' | 'upgraded' | 'downgraded' | 'went-back';
  /** The version that runs this command. */
  current: string;
  /** The version that was found, or gone back to. */
  version: string;
  /** Name of the source of the release. */
  from?: string;
  /** Path of the program. */
  program: string;
  /** Path of the previous program. */
  previous?: string;
  /** Fingerprint of the key that signed the release. */
  signer?: string;
  /** Pids of services that keep running the program that they were started as. */
  services?: readonly number[];
}

/** Returns the exit code: 2 for `--check` when there is something to install, as for other commands that show differences. */
export function exitOf({ outcome }: UpgradeReport): number {
  return outcome === 'available' ? 2 : 0;
}

export function printUpgrade(
  report: UpgradeReport,
  output: string | undefined,
  io: Pick<Io, 'out' | 'say' | 'err'>,
): void {
  if (output === 'json') {
    io.out(jsonText({ kind: 'Upgrade', formatVersion: 1, ...report }));
    return;
  }
  io.say(`${sentence(report)}\n`);
  for (const line of hints(report)) io.err(`${line}\n`);
}

function sentence({ outcome, current, version, from, program, signer }: UpgradeReport): string {
  switch (outcome) {
    case 'current':
      return `rdctl ${current} is what ${from} has: nothing to upgrade.`;
    case 'older':
      return `Nothing newer at ${from}: it has ${version}, and this is ${current}.`;
    case 'prerelease':
      return `${from} has only the prerelease ${version}, and this is ${current}. Add --version ${version} to install it.`;
    case 'available':
      return `rdctl ${version} is at ${from}, and this is ${current}. It is signed by ${signer}.`;
    case 'upgraded':
      return `Upgraded ${program} from ${current} to ${version}.`;
    case 'downgraded':
      return `Downgraded ${program} from ${current} to ${version}.`;
    case 'went-back':
      return `${program} is version ${version} again; it was ${current}.`;
  }
}

function hints({ outcome, services, current }: UpgradeReport): string[] {
  if (outcome === 'upgraded' || outcome === 'downgraded') {
    return [...serviceHints(services), `\`rdctl upgrade --back\` goes back to ${current}.`];
  }
  return outcome === 'went-back' ? serviceHints(services) : [];
}

function serviceHints(services: readonly number[] | undefined): string[] {
  const change = '`rdctl shutdown`, then `rdctl start`, changes that.';
  if (services === undefined) return [`A running service and its engine keep their version; ${change}`];
  return services.map((pid) => `Process ${pid} and its engine keep the version they were started with; ${change}`);
}

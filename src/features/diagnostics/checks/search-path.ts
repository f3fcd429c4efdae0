import { basename, delimiter } from 'node:path';
import { findProgram, programPath } from '../../../os/program.ts';
import type { IntegrationOutcome } from '../../host-integration/outcome.ts';
import { type Check, type CheckContext, type Finding, failed, passed } from '../check.ts';

/** Reports the last result for each shell start-up file. */
export const pathManagement: Check = {
  id: 'PATH_MANAGEMENT',
  category: 'Utilities',
  followsSettings: true,
  applies: ({ platform }) => platform !== 'win32',
  async run({ integration }) {
    if (integration.offBecause !== undefined) {
      return [passed(`Shell start-up files are left alone, because ${integration.offBecause}.`)];
    }
    const outcomes = integration.integrationOutcomes().filter(({ part }) => part === 'path');
    return outcomes.map(findingOf);
  },
};

function findingOf({ file, state, message = 'the reason is not known' }: IntegrationOutcome): Finding {
  const sub = basename(file);
  switch (state) {
    case 'managed':
      return passed(`\`${file}\` puts the tools on the search path.`, sub);
    case 'clean':
      return passed(`\`${file}\` has no lines of ours, as the settings say.`, sub);
    case 'left':
      return passed(`\`${file}\` is left as it is: ${message}.`, sub);
    case 'failed':
      return failed(
        `\`${file}\` could not be edited: ${message}.`,
        [
          {
            description:
              'Fix that, then `rdctl set --application.path-management-strategy manual` and the same with `rcfiles`; or stay with `manual` and edit PATH yourself.',
          },
        ],
        sub,
      );
  }
}

/** Milliseconds that a shell has to start; some start-up files are slow. */
const LIMIT = 8_000;
/** Delimits the output, because start-up files may print. */
const MARK = '\u0001';
const PRINT_PATH = `printf '${MARK}%s${MARK}' "$PATH"`;

/** Checks that a new login shell has the tools directory on its search path. */
export function shellPath(id: string, shell: string, options: readonly string[]): Check {
  return {
    id,
    category: 'Utilities',
    followsSettings: true,
    applies: ({ platform, binDirectory, integration }) =>
      platform !== 'win32' && binDirectory !== undefined && integration.offBecause === undefined,
    async run(context, signal) {
      const { binDirectory = '' } = context;
      const program = await findProgram(shell, programPath(context.env.PATH));
      if (program === undefined) return [passed(`${shell} is not installed.`)];
      const isManual = context.settings().application.pathManagementStrategy === 'manual';
      // After a first start, the files have not been written yet.
      if (!isManual && !isWritten(context)) return [];
      const path = await loginPath([program, ...options, PRINT_PATH], context, signal);
      if (path.split(delimiter).includes(binDirectory)) {
        return [passed(`\`${binDirectory}\` is on the search path of ${shell}.`)];
      }
      return [
        failed(`\`${binDirectory}\` is not on the search path of ${shell}.`, [
          {
            description: isManual
              ? `Put it there yourself, or let it be done: \`rdctl set --application.path-management-strategy rcfiles\``
              : 'The findings of `PATH_MANAGEMENT` say which start-up file could not be edited.',
          },
        ]),
      ];
    },
  };
}

/** Whether editing the start-up files has finished or failed. */
function isWritten({ integration }: CheckContext): boolean {
  return integration.integrationOutcomes().some(({ part, state }) => part === 'path' && state !== 'clean');
}

/** Returns the search path of a new shell that inherits one without our directory. */
async function loginPath(argv: readonly string[], context: CheckContext, signal: AbortSignal): Promise<string> {
  const inherited = programPath(context.env.PATH)
    .split(delimiter)
    .filter((entry) => entry !== context.binDirectory)
    .join(delimiter);
  const env = { ...context.env, HOME: context.home, PATH: inherited };
  const { stdout } = await context.run(argv, { env, signal, timeoutMs: LIMIT });
  return stdout.split(MARK)[1] ?? '';
}

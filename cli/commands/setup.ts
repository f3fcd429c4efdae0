import { homeOf } from '../../src/client/session/home.ts';
import { RdError } from '../../src/errors.ts';
import { manageAutostart, writeLauncher } from '../../src/features/host-integration/launcher.ts';
import { adoptPlaces, requireAdopted } from '../../src/state/drop-in.ts';
import { noArguments } from '../arguments/arguments.ts';
import { hostTargets } from '../arguments/environment.ts';
import { usage } from '../arguments/values.ts';
import { defineCommand, type Io } from '../command.ts';

export const setup = defineCommand({
  name: 'setup',
  summary: 'Change how this computer starts the service',
  usage: '',
  description: `--auto-start adds or removes the entry that starts the service at login. The settings do not change;
\`rdctl set --application.auto-start\` changes both.`,
  flags: {
    'auto-start': { type: 'boolean', summary: 'Start the service at login' },
  },
  classic: true,
  async run({ flags, args, io }) {
    noArguments(args, 'setup');
    const wanted = flags['auto-start'];
    if (wanted === undefined) throw usage('no changes were specified');
    const targets = hostTargets(io);
    if ('offBecause' in targets) {
      throw new RdError('ERR_IO', `no autostart entry was changed: ${targets.offBecause}`, {
        advice: 'Unset RDCTL_HOME to set up the default installation.',
      });
    }
    await requireOurs(wanted, io);
    if (wanted) {
      const kept = await writeLauncher(targets);
      if (kept !== undefined) io.err(`notice: the existing file was saved as ${kept}\n`);
    }
    const { state, file, message } = await manageAutostart(wanted, targets);
    if (state === 'managed' || state === 'clean') return 0;
    throw new RdError('ERR_IO', `the autostart entry ${file} is not correct: ${message}`, {
      advice: 'Review it, and remove it if it is not needed.',
    });
  },
});

/**
 * Throws if the directories are not ours. In drop-in mode Rancher Desktop's files stay untouched until adopted; an empty location becomes ours on
 * first write.
 */
async function requireOurs(wanted: boolean, io: Io): Promise<void> {
  const here = homeOf(io);
  if (!wanted) return requireAdopted(here);
  await adoptPlaces(here, { adopt: false, now: Date.now() });
}

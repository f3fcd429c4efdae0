import { type Check, type Finding, failed, passed } from '../check.ts';

const RISK = 'A program that breaks out of the machine then has all files of its user';

/** Checks that the program of a virtual machine can open only the machine's files, even if it is already running. */
export const machineConfined: Check = {
  id: 'MACHINE_CONFINED',
  category: 'Utilities',
  applies: ({ platform, confinement }) => platform === 'linux' && confinement !== undefined,
  followsBackend: true,
  async run({ confinement }): Promise<readonly Finding[]> {
    if (confinement === undefined) return [];
    const { next, running } = await confinement();
    if (next.by === 'nothing') {
      return [
        failed(`QEMU and its helpers run unconfined, because ${next.because}. ${RISK}.`, [
          {
            description:
              'Install bubblewrap (`apt-get install --no-install-recommends bubblewrap`) and permit user namespaces, then restart service and machine: `rdctl shutdown`, then `rdctl start`.',
          },
        ]),
      ];
    }
    if (running === false) {
      return [
        failed(`The running machine is not confined until its next start. ${RISK}.`, [
          { description: 'Restart it when that suits you: `rdctl shutdown`, then `rdctl start`.' },
        ]),
      ];
    }
    return [passed(`QEMU and its helpers are confined to the files of the machine by ${next.by}.`)];
  },
};

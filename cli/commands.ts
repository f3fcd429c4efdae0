import type { Command, CommandEntry } from './command.ts';

type Row = readonly [name: string, summary: string, load: () => Promise<Command>];

const DECLARE: readonly Row[] = [
  ['up', 'Start the desktop, with a profile or as it is', async () => (await import('./commands/up.ts')).up],
  ['down', 'Stop the backend and the service', async () => (await import('./commands/shutdown.ts')).down],
  ['init', 'Write a profile from the current settings', async () => (await import('./commands/init.ts')).init],
  [
    'plan',
    'Show what apply would change, and what it would cost',
    async () => (await import('./commands/plan.ts')).plan,
  ],
  ['diff', 'Show where the desktop differs from a profile', async () => (await import('./commands/diff.ts')).diff],
  [
    'apply',
    'Make the desktop match a profile, and wait until it does',
    async () => (await import('./commands/apply.ts')).apply,
  ],
  ['history', 'Show what was changed, when, and by what', async () => (await import('./commands/history.ts')).history],
  [
    'rollback',
    'Go back to an earlier state of settings and power',
    async () => (await import('./commands/rollback.ts')).rollback,
  ],
  ['kept', 'Show the kept profiles, and what differs from them', async () => (await import('./commands/kept.ts')).kept],
  ['release', 'Stop keeping a profile', async () => (await import('./commands/release.ts')).release],
  [
    'validate',
    'Check a profile without changing anything',
    async () => (await import('./commands/validate.ts')).validate,
  ],
  [
    'explain',
    'Show where the value of a setting comes from',
    async () => (await import('./commands/explain.ts')).explain,
  ],
  [
    'status',
    'Show what is running, and whether it matches the settings',
    async () => (await import('./commands/status.ts')).status,
  ],
  ['events', 'Show what happens, as it happens', async () => (await import('./commands/events.ts')).events],
  [
    'doctor',
    'Show what can run here, what is missing, and what is wrong',
    async () => (await import('./commands/doctor.ts')).doctor,
  ],
  [
    'logs',
    'Show the logs of service, engine, machine and cluster',
    async () => (await import('./commands/logs.ts')).logs,
  ],
  [
    'diagnostics',
    'Show problems with the desktop and this computer',
    async () => (await import('./commands/diagnostics.ts')).diagnostics,
  ],
];

const CONTROL: readonly Row[] = [
  [
    'start',
    'Start the service in the background, or update the running one',
    async () => (await import('./commands/start.ts')).start,
  ],
  ['serve', 'Run the service in the foreground', async () => (await import('./commands/serve.ts')).serve],
  [
    'service',
    'Run the service at login, and again after a crash',
    async () => (await import('./commands/service.ts')).service,
  ],
  ['shutdown', 'Stop the backend and the service', async () => (await import('./commands/shutdown.ts')).shutdown],
  [
    'list-settings',
    'Print the current settings as JSON',
    async () => (await import('./commands/list-settings.ts')).listSettings,
  ],
  ['set', 'Change individual settings', async () => (await import('./commands/set.ts')).set],
  [
    'extension',
    'Install, list and uninstall extensions',
    async () => (await import('./commands/extension.ts')).extension,
  ],
  ['api', 'Call an endpoint of the API', async () => (await import('./commands/api.ts')).api],
  ['image', 'Manage guest images for virtual machines', async () => (await import('./commands/image.ts')).image],
  ['snapshot', 'Save and restore the entire desktop', async () => (await import('./commands/snapshot.ts')).snapshot],
  [
    'shell',
    'Open a shell, or run a command, configured for the engine',
    async () => (await import('./commands/shell.ts')).shell,
  ],
  ['cp', 'Copy files between this computer and the virtual machine', async () => (await import('./commands/cp.ts')).cp],
  [
    'ssh-config',
    'Print an OpenSSH configuration for the virtual machine',
    async () => (await import('./commands/ssh-config.ts')).sshConfig,
  ],
  [
    'create-profile',
    'Write a deployment profile for macOS, Windows or Linux',
    async () => (await import('./commands/create-profile.ts')).createProfile,
  ],
  [
    'import-profile',
    'Convert deployment profiles to a profile',
    async () => (await import('./commands/import-profile.ts')).importProfile,
  ],
  ['profile', 'Check and upgrade settings files', async () => (await import('./commands/profile.ts')).profile],
  [
    'reset',
    'Remove the cluster, the machine, downloads, or everything',
    async () => (await import('./commands/reset.ts')).reset,
  ],
];

const OTHER: readonly Row[] = [
  [
    'upgrade',
    'Replace this program with a newer release, or go back',
    async () => (await import('./commands/upgrade.ts')).upgrade,
  ],
  ['token', 'Create and revoke tokens for other programs', async () => (await import('./commands/token.ts')).token],
  ['info', 'Show the version and the IP address of the machine', async () => (await import('./commands/info.ts')).info],
  [
    'completion',
    'Print the completion script for a shell',
    async () => (await import('./commands/completion.ts')).completion,
  ],
  ['version', 'Show the versions of rdctl and its API', async () => (await import('./commands/version.ts')).version],
  ['help', 'Show help for a command', async () => (await import('./commands/help.ts')).help],
];

/** Commands that are neither listed in the help nor suggested. */
const HIDDEN: readonly Row[] = [
  [
    'factory-reset',
    'Remove everything in this installation',
    async () => (await import('./commands/reset.ts')).factoryResetCommand,
  ],
  ['setup', 'Change how this computer starts the service', async () => (await import('./commands/setup.ts')).setup],
  ['paths', 'Show the directories in use', async () => (await import('./commands/paths.ts')).paths],
  ['internal', 'Commands used by the application', async () => (await import('./commands/internal.ts')).internal],
  ['__complete', 'Answer a completion script', async () => (await import('./commands/complete.ts')).complete],
  [
    '__completeNoDesc',
    'Answer a completion script, without descriptions',
    async () => (await import('./commands/complete.ts')).completeNoDesc,
  ],
];

/** Every command. The summaries are repeated here so that the root help loads no command; a test keeps them equal. */
export const COMMANDS: readonly CommandEntry[] = [
  ...DECLARE.map(([name, summary, load]) => ({ name, summary, load, group: 'declare' as const })),
  ...CONTROL.map(([name, summary, load]) => ({ name, summary, load, group: 'control' as const })),
  ...OTHER.map(([name, summary, load]) => ({ name, summary, load, group: 'other' as const })),
  ...HIDDEN.map(([name, summary, load]) => ({ name, summary, load, group: 'other' as const, hidden: true as const })),
];

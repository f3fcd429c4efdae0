import type { Command } from './command.ts';

export type Group = 'declare' | 'control' | 'other';

/** One line of the root help, with a loader for the command. */
export interface CommandEntry {
  name: string;
  summary: string;
  group: Group;
  /** Neither listed in the help nor suggested. */
  hidden?: true;
  load(): Promise<Command>;
}

/** Every command. The summaries are repeated here so that the root help loads no command; a test keeps them equal. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'init',
    summary: 'Write a profile from the settings that are in force',
    group: 'declare',
    load: async () => (await import('./commands/init.ts')).init,
  },
  {
    name: 'plan',
    summary: 'Show what apply would change, and what that costs',
    group: 'declare',
    load: async () => (await import('./commands/plan.ts')).plan,
  },
  {
    name: 'diff',
    summary: 'Show where the desktop differs from a profile',
    group: 'declare',
    load: async () => (await import('./commands/diff.ts')).diff,
  },
  {
    name: 'apply',
    summary: 'Make the desktop match a profile, and wait until it does',
    group: 'declare',
    load: async () => (await import('./commands/apply.ts')).apply,
  },
  {
    name: 'validate',
    summary: 'Check a profile without touching anything',
    group: 'declare',
    load: async () => (await import('./commands/validate.ts')).validate,
  },
  {
    name: 'explain',
    summary: 'Show where a setting has its value from, and who decides',
    group: 'declare',
    load: async () => (await import('./commands/explain.ts')).explain,
  },
  {
    name: 'status',
    summary: 'Show what runs, and whether it is what was asked for',
    group: 'declare',
    load: async () => (await import('./commands/status.ts')).status,
  },
  {
    name: 'diagnostics',
    summary: 'Show what is wrong in and around the desktop',
    group: 'declare',
    load: async () => (await import('./commands/diagnostics.ts')).diagnostics,
  },
  {
    name: 'start',
    summary: 'Start the service in the background, or act as set when it runs',
    group: 'control',
    load: async () => (await import('./commands/start.ts')).start,
  },
  {
    name: 'serve',
    summary: 'Run the service in the foreground',
    group: 'control',
    load: async () => (await import('./commands/serve.ts')).serve,
  },
  {
    name: 'shutdown',
    summary: 'Stop the backend and the service',
    group: 'control',
    load: async () => (await import('./commands/shutdown.ts')).shutdown,
  },
  {
    name: 'list-settings',
    summary: 'Print the settings that are in force as JSON',
    group: 'control',
    load: async () => (await import('./commands/list-settings.ts')).listSettings,
  },
  {
    name: 'set',
    summary: 'Change single settings',
    group: 'control',
    load: async () => (await import('./commands/set.ts')).set,
  },
  {
    name: 'extension',
    summary: 'Install, list and uninstall extensions',
    group: 'control',
    load: async () => (await import('./commands/extension.ts')).extension,
  },
  {
    name: 'api',
    summary: 'Call an endpoint of the API',
    group: 'control',
    load: async () => (await import('./commands/api.ts')).api,
  },
  {
    name: 'image',
    summary: 'Guest images for virtual machines',
    group: 'control',
    load: async () => (await import('./commands/image.ts')).image,
  },
  {
    name: 'snapshot',
    summary: 'Save the whole desktop, and go back to it',
    group: 'control',
    load: async () => (await import('./commands/snapshot.ts')).snapshot,
  },
  {
    name: 'shell',
    summary: 'Open a shell, or run a command, with the engine at hand',
    group: 'control',
    load: async () => (await import('./commands/shell.ts')).shell,
  },
  {
    name: 'create-profile',
    summary: 'Write a deployment profile for macOS, Windows or Linux',
    group: 'control',
    load: async () => (await import('./commands/create-profile.ts')).createProfile,
  },
  {
    name: 'import-profile',
    summary: 'Make a profile of deployment profiles',
    group: 'control',
    load: async () => (await import('./commands/import-profile.ts')).importProfile,
  },
  {
    name: 'profile',
    summary: 'Check and upgrade the files that hold settings',
    group: 'control',
    load: async () => (await import('./commands/profile.ts')).profile,
  },
  {
    name: 'reset',
    summary: 'Remove the cluster, the machine, downloads, or everything',
    group: 'control',
    load: async () => (await import('./commands/reset.ts')).reset,
  },
  {
    name: 'info',
    summary: 'Show the version and the address of the machine',
    group: 'other',
    load: async () => (await import('./commands/info.ts')).info,
  },
  {
    name: 'completion',
    summary: 'Print the script that lets a shell complete rdctl',
    group: 'other',
    load: async () => (await import('./commands/completion.ts')).completion,
  },
  {
    name: 'version',
    summary: 'Show the version of this tool and of the API it speaks',
    group: 'other',
    load: async () => (await import('./commands/version.ts')).version,
  },
  {
    name: 'help',
    summary: 'Show the help of a command',
    group: 'other',
    load: async () => (await import('./commands/help.ts')).help,
  },
  {
    name: 'factory-reset',
    summary: 'Remove everything of this installation',
    group: 'control',
    hidden: true,
    load: async () => (await import('./commands/factory-reset.ts')).factoryResetCommand,
  },
  {
    name: 'setup',
    summary: 'Change how this computer starts the service',
    group: 'control',
    hidden: true,
    load: async () => (await import('./commands/setup.ts')).setup,
  },
  {
    name: 'paths',
    summary: 'Show where everything is',
    group: 'other',
    hidden: true,
    load: async () => (await import('./commands/paths.ts')).paths,
  },
  {
    name: 'internal',
    summary: 'What the application calls',
    group: 'other',
    hidden: true,
    load: async () => (await import('./commands/internal.ts')).internal,
  },
  {
    name: '__complete',
    summary: 'Answer a completion script',
    group: 'other',
    hidden: true,
    load: async () => (await import('./commands/complete.ts')).complete,
  },
  {
    name: '__completeNoDesc',
    summary: 'Answer a completion script, words alone',
    group: 'other',
    hidden: true,
    load: async () => (await import('./commands/complete.ts')).completeNoDesc,
  },
];

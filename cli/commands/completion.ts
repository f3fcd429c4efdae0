import { noArguments } from '../arguments/arguments.ts';
import { type Command, defineCommand } from '../command.ts';
import { bashScript, fishScript, powershellScript, zshScript } from '../completion/scripts.ts';
import { defineGroup } from '../group.ts';

const FLAGS = {
  'no-descriptions': { type: 'boolean', summary: 'Leave out descriptions' },
} as const;

export const completion = defineGroup({
  name: 'completion',
  summary: 'Print the completion script for a shell',
  description: `Completes commands, flags and their values, files, settings, and, while a service is running, the names of
snapshots and extensions. Load the script in your shell, for example in ~/.bashrc:

  source <(rdctl completion bash)`,
  flags: FLAGS,
  classic: true,
  subcommands: [
    script('bash', 'Bash', bashScript, '  source <(rdctl completion bash)'),
    script('fish', 'fish', fishScript, '  rdctl completion fish | source'),
    script(
      'powershell',
      'PowerShell',
      powershellScript,
      '  rdctl completion powershell | Out-String | Invoke-Expression',
    ),
    script('zsh', 'Zsh', zshScript, '  source <(rdctl completion zsh)'),
  ],
});

function script(shell: string, title: string, text: (asks: string) => string, load: string): Command {
  return defineCommand({
    name: `completion ${shell}`,
    summary: `Print the script for ${title}`,
    usage: '',
    description: `To load it, run this in a shell or add it to the shell's startup file:\n\n${load}`,
    flags: FLAGS,
    classic: true,
    async run({ flags, args, io }) {
      noArguments(args, `completion ${shell}`);
      io.out(text(flags['no-descriptions'] ? '__completeNoDesc' : '__complete'));
      return 0;
    },
  });
}

import { GLOBAL_FLAGS } from '../../cli/arguments/arguments.ts';
import type { Command, CommandEntry, FlagTable } from '../../cli/command.ts';
import { usageLine } from '../../cli/usage-line.ts';
import { flagRows, GROUPS } from '../../cli/views/help-text.ts';

const PLATFORM = 'linux';

/** Exit codes, environment and files, which no command's help repeats. */
const SHARED = `.SH EXIT STATUS
.TP
.B 0
Success; for commands that compare, no difference.
.TP
.B 1
Failure.
.TP
.B 2
For commands that compare or report a state: there is a difference, or something to do.
.TP
.B 3
Refused: the input is invalid, or the service that was found is not the intended one.
.TP
.B 4
Timed out.
.TP
.B 5
Consent is required.
.TP
.B 6
The plan is stale.
.PP
Commands that Rancher Desktop's rdctl has, too, exit with 0 or 1, or with 3.
.SH ENVIRONMENT
.TP
.B RDCTL_HOME
Directory of the installation, instead of those of the XDG specification.
.TP
.B RDCTL_DRIVER
Driver to use at the first start of the service.
.TP
.B RDCTL_PASSWORD
Password for the service.
.TP
.BR NO_COLOR ", " FORCE_COLOR
Turn colors off or on.
.SH FILES
.TP
.I ~/.local/share/rdctl
Settings, images, containers and volumes of a user.
.TP
.I /usr/share/doc/rdctl/docs
Guides and reference.
`;

/** One page for the tool and one for each visible command, with its subcommands; by file name. */
export async function manPages(
  commands: readonly CommandEntry[],
  { version, date }: { version: string; date: string },
): Promise<Map<string, string>> {
  const pages = new Map<string, string>();
  const visible = commands.filter(({ hidden }) => !hidden);
  const title = (name: string) => `.TH ${name.toUpperCase()} 1 ${date} "rdctl ${version}" "User Commands"\n`;
  const lists = GROUPS.map(([group, heading]) => {
    const rows = visible
      .filter((entry) => entry.group === group)
      .map(({ name, summary }) => `.TP\n.BR rdctl\\-${escaped(name)} (1)\n${line(`${summary}.`)}`);
    return `.SS ${line(heading.replace(/:$/, ''))}${rows.join('')}`;
  });
  pages.set(
    'rdctl.1',
    `${title('rdctl')}.SH NAME\nrdctl \\- turn a desired\\-state file into a running container desktop
.SH SYNOPSIS\n.B rdctl\n.I COMMAND\n[flags]
.SH DESCRIPTION
Write down what your container desktop should be: machine, engine, Kubernetes, policies.
.B rdctl plan
shows what would change, what each change costs, and what it interrupts.
.B rdctl apply
makes it so, and waits until it is.
.SH COMMANDS\n${lists.join('')}.SH GLOBAL OPTIONS\n${options(GLOBAL_FLAGS)}${SHARED}`,
  );
  for (const entry of visible) {
    const command = await entry.load();
    pages.set(`rdctl-${entry.name}.1`, `${title(`rdctl-${entry.name}`)}${page(command)}`);
  }
  return pages;
}

function page(command: Command): string {
  const summary = command.summary.charAt(0).toLowerCase() + command.summary.slice(1);
  const { subcommands = [] } = command;
  const own = options(command.flags);
  return [
    `.SH NAME\nrdctl\\-${escaped(command.name)} \\- ${escaped(summary)}\n`,
    `.SH SYNOPSIS\n.nf\n${[command, ...subcommands].map((each) => line(usageLine(each))).join('')}.fi\n`,
    `.SH DESCRIPTION\n${text(command.description) || line(`${command.summary}.`)}`,
    ...(own === '' ? [] : [`.SH OPTIONS\n${own}`]),
    ...(subcommands.length === 0 ? [] : ['.SH COMMANDS\n', ...subcommands.map(section)]),
    '.SH SEE ALSO\n.BR rdctl (1)\n',
  ].join('');
}

/** A subcommand as a part of the page of its group. */
function section(command: Command): string {
  return `.SS ${line(usageLine(command))}${line(`${command.summary}.`)}.PP\n${text(command.description)}${options(command.flags)}`;
}

function options(table: FlagTable): string {
  const rows = flagRows(table, [], PLATFORM);
  return rows.map(([label, summary]) => `.TP\n.B ${line(label.trim())}${line(`${summary}.`)}`).join('');
}

/** A description: paragraphs, and indented lines as they are. */
function text(description: string): string {
  const blocks = description.trim().split(/\n{2,}|\n(?=Exit codes:)/);
  if (blocks[0] === '') return '';
  return `${blocks
    .map((block) =>
      block
        .split('\n')
        .map((each) => (/^\s/.test(each) ? `.EX\n${line(each)}.EE\n` : line(each)))
        .join('')
        .replaceAll('.EE\n.EX\n', ''),
    )
    .join('.PP\n')}`;
}

/** A line of text, which begins no request. */
function line(words: string): string {
  return `${escaped(words).replace(/^[.']/, '\\&$&')}\n`;
}

function escaped(words: string): string {
  return words.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('`', '\\`').replaceAll("'", '\\(aq');
}

import { build } from 'plist';
import { RdError } from '../../errors.ts';
import { PRODUCT } from '../../product.ts';

/** Marks a unit as ours: others are neither replaced nor removed. */
export const UNIT_MARK = 'X-Rdctl-Managed';

/** The program that a unit starts, and its environment. */
export interface UnitContent {
  /** Program and arguments of the service in the foreground. */
  command: readonly string[];
  /** Variables that name the installation, such as `RDCTL_HOME`. */
  environment: Readonly<Record<string, string>>;
  /** Page about the service, such as `man:rdctl(1)`; only for systemd. */
  documentation?: string;
}

/** Returns the unit for systemd. A killed service leaves its engines and machines running, and so must the unit's stop. */
export function systemdService({ command, environment, documentation }: UnitContent): string {
  const variables = Object.entries(environment).map(
    ([name, value]) => `Environment=${systemdWord(`${name}=${value}`)}`,
  );
  return lines([
    `# ${UNIT_MARK}`,
    '[Unit]',
    `Description=${PRODUCT.name} container desktop`,
    ...(documentation === undefined ? [] : [`Documentation=${documentation}`]),
    'After=network-online.target',
    'Wants=network-online.target',
    'StartLimitIntervalSec=60',
    'StartLimitBurst=5',
    '',
    '[Service]',
    `ExecStart=${command.map(execWord).join(' ')}`,
    ...variables,
    'Restart=on-failure',
    'RestartSec=2',
    'KillMode=process',
    'TimeoutStopSec=5min',
    '',
    '[Install]',
    'WantedBy=default.target',
  ]);
}

/** Returns the socket for systemd: its first connection starts the service. */
export function systemdSocket(path: string): string {
  return lines([
    `# ${UNIT_MARK}`,
    '[Unit]',
    `Description=First use of the ${PRODUCT.name} container desktop`,
    '',
    '[Socket]',
    `ListenStream=${specifierFree(oneLine(path))}`,
    'SocketMode=0600',
    'DirectoryMode=0700',
    // Otherwise the file stays, and a command would find it.
    'RemoveOnStop=yes',
    '',
    '[Install]',
    'WantedBy=sockets.target',
  ]);
}

/** Returns the agent or daemon for launchd, as a property list. */
export function launchdJob(label: string, { command, environment }: UnitContent): string {
  const job = {
    Label: label,
    ProgramArguments: [...command],
    EnvironmentVariables: { ...environment },
    RunAtLoad: true,
    // Started again after a crash; `rdctl shutdown` exits with 0.
    KeepAlive: { SuccessfulExit: false },
    ThrottleInterval: 10,
    ExitTimeOut: 300,
    [UNIT_MARK]: true,
  };
  return `${build(job)}\n`;
}

/** Returns the task for the Windows Task Scheduler, as XML: it starts at login of the user, and again after a failure. */
export function windowsTask({ command, environment }: UnitContent, user: string): string {
  for (const text of [...command, ...Object.values(environment)]) refuseExpanded(text);
  const [program = '', ...words] = command;
  const sets = Object.entries(environment).map(([name, value]) => `set "${name}=${value}" && `);
  // A task has no variables of its own.
  const [file, text] =
    sets.length === 0
      ? [program, words.map((word) => `"${word}"`).join(' ')]
      : ['cmd.exe', `/d /s /c "${sets.join('')}${command.map((word) => `"${word}"`).join(' ')}"`];
  return [
    '<?xml version="1.0" encoding="UTF-16"?>',
    '<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">',
    `<RegistrationInfo><Description>${UNIT_MARK}: ${PRODUCT.name} container desktop</Description></RegistrationInfo>`,
    `<Triggers><LogonTrigger><UserId>${xmlText(user)}</UserId></LogonTrigger></Triggers>`,
    `<Principals><Principal id="Author"><UserId>${xmlText(user)}</UserId><LogonType>InteractiveToken</LogonType></Principal></Principals>`,
    '<Settings>',
    '<DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>',
    '<StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>',
    '<ExecutionTimeLimit>PT0S</ExecutionTimeLimit>',
    '<RestartOnFailure><Interval>PT1M</Interval><Count>5</Count></RestartOnFailure>',
    '</Settings>',
    `<Actions Context="Author"><Exec><Command>${xmlText(file)}</Command><Arguments>${xmlText(text)}</Arguments></Exec></Actions>`,
    '</Task>',
    '',
  ].join('\r\n');
}

function lines(text: readonly string[]): string {
  return `${text.join('\n')}\n`;
}

/** Quotes a word of `ExecStart=`, in which a dollar sign would begin a variable (systemd.service(5), "Command lines"). */
function execWord(text: string): string {
  return systemdWord(text).replaceAll('$', '$$$$');
}

/** Quotes a word of a unit file, in which a percent sign would begin a specifier (systemd.syntax(7), systemd.unit(5)). */
function systemdWord(text: string): string {
  return `"${specifierFree(oneLine(text)).replace(/["\\]/g, '\\$&')}"`;
}

function specifierFree(text: string): string {
  return text.replaceAll('%', '%%');
}

function oneLine(text: string): string {
  if (!/[\n\r\0]/.test(text)) return text;
  throw new RdError('ERR_IO', `a unit cannot hold ${JSON.stringify(text)}: it contains a line break`);
}

/** Throws for text that `cmd.exe` would expand, or that would end the word. */
function refuseExpanded(text: string): void {
  if (!/["%\r\n]/.test(text)) return;
  const what = `${JSON.stringify(text)}: it contains a quotation mark, percent sign or line break`;
  throw new RdError('ERR_IO', `a task cannot hold ${what}`);
}

function xmlText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

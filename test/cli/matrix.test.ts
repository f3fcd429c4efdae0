import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { COMMANDS } from '../../cli/commands.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctl, rdctlProgram } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

/** Exit code, what is on stdout and what is on stderr. A string is all of it, a pattern a part; nothing is an empty stream. */
type Row = readonly [argv: readonly string[], exit: number, out: string | RegExp, err: string | RegExp];

/** The message, then the usage. */
const misuse = (message: string): RegExp =>
  new RegExp(`^Error: ${escaped(message)}.*\\n(?:[\\s\\S]*\\n)?Usage:\\n {2}rdctl`);
/** A line that begins with the message, and no usage. */
const refusal = (message: string): RegExp => new RegExp(`^Error: ${escaped(message)}(?![\\s\\S]*Usage:)`);
const NO_SERVICE = refusal('failed to get connection info: open ');
const PROFILE = ['-f', resolve('examples/moby.yaml')];

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

const WITHOUT_A_SERVICE: readonly Row[] = [
  [[], 0, /rdctl COMMAND \[flags\]/, ''],
  [['--help'], 0, /rdctl COMMAND \[flags\]/, ''],
  [['-h'], 0, /rdctl COMMAND \[flags\]/, ''],
  [['help'], 0, /rdctl COMMAND \[flags\]/, ''],
  [['help', 'set'], 0, /^Change single settings\n/, ''],
  [['help', 'snapshot', 'create'], 0, /rdctl snapshot create/, ''],
  [['help', 'foo'], 0, '', /^Unknown help topic \[`foo`\]\nUsage:/],
  [['foo'], 1, '', `Error: unknown command "foo" for "rdctl"\nRun 'rdctl --help' for usage.\n`],
  [
    ['lst-settings'],
    1,
    '',
    `Error: unknown command "lst-settings" for "rdctl"\n\nDid you mean this?\n\tlist-settings\n\nRun 'rdctl --help' for usage.\n`,
  ],
  [['--nope'], 1, '', misuse('unknown flag: --nope')],
  [['set', '-Z'], 1, '', misuse(`unknown shorthand flag: 'Z' in -Z`)],
  [['api', 'x', '--input'], 1, '', misuse('flag needs an argument: --input')],
  [
    ['list-settings', '--port=abc'],
    1,
    '',
    misuse('invalid argument "abc" for "--port" flag: strconv.ParseInt: parsing "abc": invalid syntax'),
  ],
  [
    ['set', '--kubernetes.port=99999999999999999999'],
    1,
    '',
    misuse(
      'invalid argument "99999999999999999999" for "--kubernetes.port" flag: strconv.ParseInt: parsing "99999999999999999999": value out of range',
    ),
  ],
  [
    ['set', '--kubernetes.enabled=maybe'],
    1,
    '',
    misuse(
      'invalid argument "maybe" for "--kubernetes.enabled" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
    ),
  ],

  [['version'], 0, /^rdctl client version: v\d+\.\d+\.\d+, targeting server version: v1\n$/, ''],
  [['version', '-o', 'json'], 0, /^\{\n {2}"version": "v/, ''],
  [['--user', 'x', 'version', '--port=1'], 0, /^rdctl client version/, ''],
  [['version', 'x'], 1, '', misuse('unknown command "x" for "rdctl version"')],
  [['info', '--field', 'version'], 0, /^v\d+\.\d+\.\d+\n$/, ''],
  [['info'], 0, /^Version: {3}v\S+\n$/, /^The address is not known: /],
  [['info', '--field=ip-address'], 1, '', refusal('The address is not known: ')],
  [['info', '-o', 'json'], 0, /"ip-address": null/, /^The address is not known: /],
  [['info', '-f', 'foo'], 1, '', misuse('unknown field "foo"')],
  [
    ['info', '-o', 'xml'],
    1,
    '',
    misuse('invalid argument "xml" for "-o, --output" flag: value "xml" is not one of the allowed values: [text json]'),
  ],

  [['list-settings'], 1, '', NO_SERVICE],
  [['list-settings', 'x'], 1, '', misuse('unknown command "x" for "rdctl list-settings"')],
  [['list-settings', '--config-path', '/no/such'], 1, '', refusal('failed to get connection info: open /no/such: ')],
  [['set', '--kubernetes.enabled=false'], 1, '', NO_SERVICE],
  [['set'], 1, '', NO_SERVICE],
  [['set', '--kubernetes.enabled', 'false'], 1, '', misuse('unknown command "false" for "rdctl set"')],
  [['set', '--virtual-machine.type=vz'], 1, '', 'Error: option --virtual-machine.type is not available on Linux\n'],
  [
    ['set', '--container-engine=foo'],
    1,
    '',
    `Error: invalid value for option --container-engine: "foo"; must be 'containerd', 'docker', or 'moby'\n`,
  ],
  [
    ['set', '--application.extensions.installed=a=b'],
    1,
    '',
    refusal('option --application.extensions.installed is not'),
  ],
  [['api', '/'], 1, '', NO_SERVICE],
  [['start', 'x'], 1, '', misuse('unknown command "x" for "rdctl start"')],
  [
    ['start', '--wait-timeout', '5'],
    1,
    '',
    misuse('invalid argument "5" for "--wait-timeout" flag: time: missing unit in duration "5"'),
  ],
  [['start', '--container-engine.name=x'], 1, '', refusal('invalid value for option --container-engine.name: "x"')],
  [['start', '--path', '/no/such/program'], 1, '', refusal('fork/exec /no/such/program: no such file or directory')],
  [['serve', 'x'], 1, '', misuse('unknown command "x" for "rdctl serve"')],
  [['shutdown'], 0, '', ''],
  [['shutdown', '--wait=false'], 0, '', ''],
  [['shutdown', 'x'], 1, '', misuse('unknown command "x" for "rdctl shutdown"')],
  [
    ['shell'],
    1,
    '',
    /^The Rancher Desktop VM needs to be running in order to execute 'rdctl shell', but it currently is not\.\n/,
  ],
  [['shell', '--help'], 0, /rdctl shell \[COMMAND/, ''],

  [['completion', 'bash'], 0, /\b__complete\b/, ''],
  [['completion', 'zsh'], 0, /^#compdef rdctl\n/, ''],
  [['completion', 'fish', '--no-descriptions'], 0, /__completeNoDesc/, ''],
  [['completion', 'powershell'], 0, /Register-ArgumentCompleter/, ''],
  [['completion'], 0, /rdctl completion COMMAND/, ''],
  [['completion', 'tcsh'], 1, '', misuse('unknown command "tcsh" for "rdctl completion"')],
  [['__complete', 'vers'], 0, /^version\tShow .*\n:4\n$/, ''],
  [['__completeNoDesc', 'vers'], 0, 'version\n:4\n', ''],

  [['create-profile'], 1, '', misuse('an "--output FORMAT" option of either "plist" or "reg" must be specified')],
  [['create-profile', '--output=reg', '-b', '{}'], 0, /^Windows Registry Editor Version 5\.00\n/, ''],
  [['create-profile', '--output=plist', '-b', '{}'], 0, /^<\?xml version="1\.0" encoding="UTF-8"\?>\n/, ''],
  [['create-profile', '--output=plist', '--from-settings'], 1, '', NO_SERVICE],
  [['create-profile', '--output=reg', '-b', 'null'], 1, '', refusal('error in json: ')],

  [
    ['extension'],
    1,
    '',
    /^Error: no subcommand given\.\n\nUsage: rdctl extension \[install \| uninstall \| list\] \[options\.\.\.\]\n/,
  ],
  [['extension', 'foo'], 1, '', /^Error: no subcommand given\.\n\nUsage: rdctl extension \[/],
  [['extension', 'install'], 1, '', misuse('accepts 1 arg(s), received 0')],
  [['extension', 'install', 'a/b'], 1, '', NO_SERVICE],
  [['extension', 'uninstall', 'a', 'b'], 1, '', misuse('accepts 1 arg(s), received 2')],
  [['extension', 'uninstall', 'a/b'], 1, '', NO_SERVICE],
  [['extension', 'list'], 1, '', NO_SERVICE],
  [['extension', 'ls'], 1, '', NO_SERVICE],

  [['snapshot'], 0, /rdctl snapshot COMMAND/, ''],
  [['snapshot', 'foo'], 1, '', misuse('unknown command "foo" for "rdctl snapshot"')],
  [['snapshot', 'list'], 0, '', 'No snapshots present.\n'],
  [['snapshot', 'ls', '--json'], 0, '', ''],
  [['snapshot', 'create'], 1, '', misuse('accepts 1 arg(s), received 0')],
  [['snapshot', 'create', ''], 1, '', refusal('snapshot name must not be the empty string')],
  [['snapshot', 'restore', 'x'], 1, '', refusal(`failed to restore snapshot "x": can't find snapshot "x"`)],
  [['snapshot', 'delete', 'x'], 1, '', refusal(`failed to delete snapshot "x": can't find snapshot "x"`)],
  [['snapshot', 'delete', 'x', '--json'], 1, /^\{"error":"failed to delete snapshot/, ''],
  [['snapshot', 'unlock'], 0, '', ''],

  [['reset'], 1, '', misuse('no reset options specified. Use --help to see available options')],
  [['reset', '--k8s'], 1, '', NO_SERVICE],
  [['reset', '--vm', '--cache'], 1, '', NO_SERVICE],
  [['reset', '--cache'], 0, 'Cache cleared successfully\n', ''],
  [['setup'], 1, '', misuse('no changes were specified')],
  [['paths'], 0, /^\{"appHome":"[^\n]*\}\n$/, ''],
  [['explain', 'kubernetes.enabled'], 0, /kubernetes\.enabled/, ''],
  [['explain', 'kubernetes.enabld'], 1, '', /kubernetes\.enabled/],

  [['internal'], 1, '', misuse('"rdctl internal" expects subcommands')],
  [['internal', 'process'], 1, '', misuse('"rdctl internal process" expects subcommands')],
  [['internal', 'process', 'wait-kill'], 1, '', misuse('required flag(s) "pid" not set')],
  [['internal', 'process', 'wait-kill', '--pid=0'], 0, '', ''],
  [['diagnostics'], 1, '', /^Error: /],
  [['status'], 1, '', /^Error: /],
  [['init', '--out-file', '/dev/null/x'], 1, '', /^Error: /],
  [['validate', ...PROFILE], 0, '', /moby\.yaml: valid profile\n$/],
  [['plan', ...PROFILE], 0, /^Target: rdctl at /, ''],
  [['diff', ...PROFILE], 2, /^Target: rdctl at /, ''],
  [['apply'], 1, '', /^Error: /],
];

const WITH_A_SERVICE: readonly Row[] = [
  [['list-settings'], 0, /^\{\n {2}"version": 19,\n[\s\S]*\}\n\n$/, ''],
  [['list-settings', '-o', 'json'], 0, /^\{\n {2}"version": 19,/, ''],
  [['list-settings', '--password=wrong'], 1, '', refusal('401 Unauthorized: user/password not accepted')],
  [['set'], 1, '', misuse('set command: no settings to change were given')],
  [['set', '--images.show-all=false'], 0, 'Status: settings updated; no restart required.\n', ''],
  [['set', '--images.show-all=false'], 0, 'Status: no changes necessary.\n', ''],
  [['set', '--diagnostics.muted-checks', 'A=true'], 0, 'Status: settings updated; no restart required.\n', ''],
  [['set', '--diagnostics.muted-checks', '{"A":null}'], 0, 'Status: settings updated; no restart required.\n', ''],
  [['set', '--diagnostics.muted-checks', 'A=null'], 0, 'Status: no changes necessary.\n', ''],
  [
    ['set', '--kubernetes-version=karl'],
    1,
    '',
    /^Error: errors in attempt to update settings:\nKubernetes version "karl" not found\.\n/,
  ],
  [
    ['set', '--container-engine', 'containerd'],
    0,
    'Status: reconfiguring Rancher Desktop to apply changes (this may take a while).\n',
    '',
  ],
  [['start', '--wait'], 0, '', ''],
  [['start', '--no-modal-dialogs'], 0, '', ''],
  [['start', '--images.show-all'], 0, 'Status: settings updated; no restart required.\n', ''],
  [['start', '--path', '/x'], 1, '', misuse('--path "/x" specified but Rancher Desktop is already running')],
  [['serve'], 1, '', refusal('a service for ')],
  [['api', '/'], 0, /^\["GET \/","GET \/v0","GET \/v1",/, ''],
  [['api', '/v0'], 0, '["GET /v0"]\n', ''],
  [['api', 'about'], 0, /\S/, ''],
  [['api', '/v1/nope'], 1, '{"message":"404 Not Found"}\n', 'Unknown command: GET /v1/nope\n'],
  [['api', 'settings', '-b', '{}'], 1, '{"message":"400 Bad Request"}\n', /\S/],
  [['api', 'settings', '-X', 'PUT', '--body', '{"version":19}'], 0, 'no changes necessary\n', ''],
  [['api', 'settings', '--input', '/no/such/file'], 1, '', refusal('open /no/such/file: no such file or directory')],
  [['api', '-X', 'BAD METHOD', 'x'], 1, '', 'Error: net/http: invalid method "BAD METHOD"\n'],
  [['api'], 1, '', misuse('api command: no endpoint specified')],
  [
    ['api', 'a', 'b'],
    1,
    '',
    misuse('api command: too many endpoints specified ([a b]); exactly one must be specified'),
  ],
  [
    ['api', 'a', '-b', 'x', '--input=-'],
    1,
    '',
    misuse('api command: --body and --input options cannot both be specified'),
  ],
  [['info'], 0, /^Version: {3}v\S+\n$/, /^The simulated driver gives its machine no address\.\n$/],
  [['info', '-f', 'version', '-o', 'json'], 0, /^\{\n {2}"version": "v[^"]+"\n\}\n$/, ''],
  [['status', '-o', 'json'], 0, /"kind": "Status"/, ''],
  [['explain', 'images.showAll', '-o', 'json'], 0, /"images\.showAll"/, ''],
  [['create-profile', '--from-settings', '--output', 'reg'], 0, /\\locked\]\n"version"=dword:13\n/, ''],
  [['shell', 'true'], 1, '', refusal('There is no shell: the desktop is simulated')],
  [['extension', 'list'], 0, 'No extensions are installed.\n', ''],
  [['extension', 'ls', '-o', 'json'], 0, /^\{\}\n/, ''],
  [['extension', 'uninstall', 'no/such'], 0, 'Uninstalling image no/such: \n', ''],
  [['extension', 'install', '--force', 'No Such'], 1, /^\{"message":"4\d\d .*"\}\n$/, /\S/],
  [['snapshot', 'create', 'one', '--description', 'first'], 0, '', ''],
  [['snapshot', 'create', 'one'], 1, '', refusal('name "one" already exists')],
  [['snapshot', 'list'], 0, /^NAME {4}CREATED {2,}DESCRIPTION\none {5}.* {4}first\n$/, ''],
  [['snapshot', 'list', '--json'], 0, /^\{"created":"[^"]+","name":"one","description":"first"\}\n$/, ''],
  [['snapshot', 'restore', 'one'], 0, '', ''],
  [['snapshot', 'delete', 'one'], 0, '', ''],
  [['snapshot', 'list'], 0, '', 'No snapshots present.\n'],
  [['reset', '--k8s'], 0, 'Rancher Desktop fast reset successful\n', ''],
  [['reset', '--vm', '--cache'], 0, 'Rancher Desktop wipe reset successful\nCache cleared successfully\n', ''],
  [['init'], 0, /^kind: Profile$/m, ''],
  [['apply', ...PROFILE], 0, /^Converged in /m, /^Target: rdctl at /],
  [['diff', ...PROFILE], 0, /\nNo differences\.\n$/, ''],
  [['plan', ...PROFILE, '--detailed-exitcode'], 0, /\nnothing to change\n$/, ''],
  [['shutdown'], 0, 'Shutting down.\n', ''],
  [['shutdown'], 0, '', ''],
];

/** What does not hold, one line each. */
async function failing(rows: readonly Row[], env: Record<string, string>): Promise<string[]> {
  const found: string[] = [];
  const cwd = temporaryDirectory();
  for (const [argv, exit, out, err] of rows) {
    const outcome = await rdctl(argv, { env, cwd });
    const wrong = [
      ...(outcome.exit === exit ? [] : [`exit ${outcome.exit}, not ${exit}`]),
      ...(holds(outcome.out, out) ? [] : [`stdout ${JSON.stringify(outcome.out)}, not ${String(out)}`]),
      ...(holds(outcome.err, err) ? [] : [`stderr ${JSON.stringify(outcome.err)}, not ${String(err)}`]),
    ];
    if (wrong.length > 0) found.push(`rdctl ${argv.join(' ')}: ${[...wrong, JSON.stringify(outcome)].join('; ')}`);
  }
  return found;
}

function holds(text: string, expected: string | RegExp): boolean {
  return typeof expected === 'string' ? text === expected : expected.test(text);
}

test('without a service', async () => {
  const env = { RDCTL_HOME: temporaryDirectory(), RDCTL_DRIVER: 'simulated' };
  expect(await failing(WITHOUT_A_SERVICE, env)).toEqual([]);
});

describe('with a service', () => {
  const tool = builtTool();

  /** A simulated desktop in a process of its own, so that commands may wait for its end. */
  async function desktop(): Promise<Record<string, string>> {
    const env = { RDCTL_HOME: temporaryDirectory(), RDCTL_DRIVER: 'simulated', RDCTL_SIMULATED_LATENCY_MS: '0' };
    const program = (...argv: string[]) => rdctlProgram(argv, { entry: tool.entry(), env });
    onTestFinished(async () => void (await program('shutdown')));
    expect(await program('start', '--wait')).toMatchObject({ exit: 0 });
    return env;
  }

  test('that is simulated', async () => {
    expect(await failing(WITH_A_SERVICE, await desktop())).toEqual([]);
  }, 120_000);

  test.each([
    [['reset', '--factory']],
    [['reset', '--factory', '--cache', '--yes']],
    [['factory-reset', '--remove-kubernetes-cache']],
  ])('%j removes everything', async (argv) => {
    const env = await desktop();
    const { exit, out, err } = await rdctl(argv, { env });
    expect({ exit, out }).toEqual({ exit: 0, out: '' });
    expect(err.startsWith(`Command "factory-reset" is deprecated, Use 'rdctl reset --factory' instead.\n`)).toBe(
      argv[0] === 'factory-reset',
    );
    expect(existsSync(join(env.RDCTL_HOME ?? '', 'config', 'settings.json'))).toBe(false);
    expect((await rdctl(['list-settings'], { env })).exit).toBe(1);
  });
});

/** The command tables of the specification and of the compatible tool, hidden commands included. */
const PROMISED = [
  'api',
  'completion bash',
  'completion fish',
  'completion powershell',
  'completion zsh',
  'create-profile',
  'extension install',
  'extension list',
  'extension ls',
  'extension uninstall',
  'factory-reset',
  'help',
  'info',
  'internal process wait-kill',
  'list-settings',
  'paths',
  'reset',
  'set',
  'setup',
  'shell',
  'shutdown',
  'snapshot create',
  'snapshot delete',
  'snapshot list',
  'snapshot ls',
  'snapshot restore',
  'snapshot unlock',
  'start',
  'version',
];

test('every command has its rows', () => {
  const lines = [...WITHOUT_A_SERVICE, ...WITH_A_SERVICE].map(([argv]) => argv.join(' '));
  const rowed = (name: string) => lines.some((line) => line === name || line.startsWith(`${name} `));
  expect(PROMISED.filter((name) => name !== 'factory-reset' && !rowed(name))).toEqual([]);
  expect(COMMANDS.map(({ name }) => name).filter((name) => name !== 'factory-reset' && !rowed(name))).toEqual([]);
});

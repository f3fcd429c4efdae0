import { type DeploymentTree, deploymentTree } from '../../profiles/deployment/tree.ts';
import type { Hive } from '../../profiles/export/exporter.ts';
import { plistText } from '../../profiles/export/plist.ts';
import { regText } from '../../profiles/export/reg.ts';
import { createClient } from '../../src/client/client.ts';
import { RdError } from '../../src/errors.ts';
import { isObject, isTooDeep, type JsonObject } from '../../src/json.ts';
import { noArguments, usage } from '../arguments.ts';
import { defineCommand, type Invocation, type Io } from '../command.ts';
import { readInput } from '../input.ts';
import { quote } from '../literals.ts';
import { supportedPlatform } from '../platform.ts';

const FLAGS = {
  output: {
    type: 'string',
    summary: 'plist for macOS, reg for Windows',
    offers: ['plist', 'reg'],
    placeholder: 'FORMAT',
  },
  input: { type: 'string', summary: 'File with settings as JSON; `-` is standard input', placeholder: 'FILE' },
  body: { type: 'string', short: 'b', summary: 'The settings as JSON', placeholder: 'JSON' },
  'from-settings': { type: 'boolean', summary: 'Take the settings that are in force' },
  hive: {
    type: 'string',
    summary: 'Of reg: hklm for all users, hkcu for the present one (default hklm)',
    offers: ['hklm', 'hkcu'],
    placeholder: 'HIVE',
  },
  type: {
    type: 'string',
    summary: 'Of reg: locked or defaults (default locked)',
    offers: ['locked', 'defaults'],
    placeholder: 'TYPE',
  },
  strict: { type: 'boolean', summary: 'Fail when something would be left out' },
} as const;

const HIVES: ReadonlyMap<string, Hive> = new Map([
  ['hklm', 'hklm'],
  ['hkcu', 'hkcu'],
]);

export const createProfile = defineCommand({
  name: 'create-profile',
  summary: 'Write a deployment profile for macOS or Windows',
  usage: '',
  description: `Prints the settings of a JSON document in the form that the application reads as its
administrator's: a property list, or a file for the registry. Names that are no settings are
left out and named on stderr. The proxy password is never taken from the settings in force.

  rdctl create-profile --output reg --input settings.json > locked.reg
  rdctl create-profile --output plist --from-settings > defaults.plist`,
  flags: FLAGS,
  classic: true,
  async run(invocation) {
    const { flags, args, io } = invocation;
    noArguments(args, 'create-profile');
    const write = writerFor(invocation);
    const { settings, warnings } = await readSettings(invocation);
    const tree = await deploymentTree(settings);
    const said = [...warnings, ...tree.warnings];
    if (flags.strict && said.length > 0) {
      throw new RdError('ERR_PROFILE_INVALID', 'the profile would not hold all that was given:', { details: said });
    }
    const text = write(tree);
    for (const line of said) io.err(`Warning: ${line}\n`);
    io.out(text);
    return 0;
  },
});

type CreateProfile = Invocation<typeof FLAGS>;

/** Looks at the flags in the order of the compatible tool, with its texts (cli facts, 7.2). */
function writerFor({ flags, given }: CreateProfile): (tree: DeploymentTree) => string {
  const { output } = flags;
  if (!output) throw usage('an "--output FORMAT" option of either "plist" or "reg" must be specified');
  if (output !== 'plist' && output !== 'reg') {
    throw usage(
      `received unrecognized "--output FORMAT" option of ${quote(output)}; "plist" or "reg" must be specified`,
    );
  }
  const sources = [flags.input, flags.body, flags['from-settings']].filter(Boolean).length;
  const exactly = 'must specify exactly one input format of "--input FILE|-", "--body|-b STRING", or "--from-settings"';
  if (sources === 0) throw usage(`no input format specified: ${exactly}`);
  if (sources > 1) throw usage(`too many input formats specified: ${exactly}`);
  if (output === 'plist') {
    if (given.some(({ name }) => name === 'hive' || name === 'type')) {
      throw usage('registry hive and type can\'t be specified with "plist"');
    }
    return plistText;
  }
  const hive = HIVES.get((flags.hive ?? 'hklm').toLowerCase());
  if (!hive) throw usage(`invalid registry hive of ${quote(flags.hive ?? '')} specified, must be "hklm" or "hkcu"`);
  const type = (flags.type ?? 'locked').toLowerCase();
  if (type !== 'defaults' && type !== 'locked') {
    throw usage(`invalid registry type of ${quote(flags.type ?? '')} specified, must be "defaults" or "locked"`);
  }
  return (tree) => regText(tree, hive, type);
}

async function readSettings(invocation: CreateProfile): Promise<{ settings: JsonObject; warnings: string[] }> {
  const { flags, io } = invocation;
  if (flags['from-settings']) return liveSettings(invocation);
  const text = flags.input ? (await readInput(flags.input, io)).toString('utf8') : (flags.body ?? '');
  return { settings: await parse(text.replace(/^\ufeff/, '')), warnings: [] };
}

async function parse(text: string): Promise<JsonObject> {
  if (isTooDeep(text)) throw badJson('it is nested too deeply');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's own message quotes the text, which may hold a password.
    const { parseDocument } = await import('../../src/settings/parse.ts');
    const [problem] = parseDocument(text, '').findings;
    throw badJson(problem?.line === undefined ? 'it is not JSON' : `line ${problem.line}: ${problem.message}`);
  }
  if (isObject(value)) return value;
  throw badJson('the settings must be an object');
}

function badJson(reason: string): RdError {
  return new RdError('ERR_PROFILE_INVALID', `error in json: ${reason}`);
}

/** The settings in force, at our version and without secrets. */
async function liveSettings({ connect, io }: CreateProfile): Promise<{ settings: JsonObject; warnings: string[] }> {
  const { settings: live } = await createClient(await connect()).settings({ signal: io.signal });
  const { withoutSecrets } = await import('../../profiles/deployment/public-settings.ts');
  return withoutSecrets(await atOurVersion(live, io));
}

async function atOurVersion(live: JsonObject, io: Io): Promise<JsonObject> {
  const { SCHEMA_VERSION } = await import('../../src/settings/settings.gen.ts');
  if (typeof live.version !== 'number' || live.version >= SCHEMA_VERSION) return live;
  const { migrate } = await import('../../src/settings/migrate.ts');
  return migrate(live, { platform: supportedPlatform(io.platform), partial: true });
}

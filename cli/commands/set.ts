import { createClient } from '../../src/client/client.ts';
import type { LifecycleClient, PlanClient, SettingsClient } from '../../src/client/contract.ts';
import { userFilesError } from '../../src/client/user-files.ts';
import { RdError } from '../../src/errors.ts';
import type { JsonObject } from '../../src/json.ts';
import { SCHEMA_VERSION } from '../../src/settings/settings.gen.ts';
import { noArguments } from '../arguments/arguments.ts';
import {
  type GivenSetting,
  givenSettings,
  SETTING_FLAG_TABLE,
  settingsPayload,
  valueAdvice,
} from '../arguments/setting-flags.ts';
import { platformName, usage } from '../arguments/values.ts';
import { defineCommand, type Io } from '../command.ts';
import { printConsequences } from '../views/service-activity.ts';

export const set = defineCommand({
  name: 'set',
  summary: 'Change individual settings',
  usage: '',
  description: `Sends only the given settings, in one request. Specify boolean values with
an equals sign: \`--kubernetes.enabled=false\`. A list is replaced as a whole: repeat its flag,
or pass a JSON array. Map entries are changed individually: \`KEY=true\` sets an entry, and \`KEY=null\`
removes it.
--dry-run shows the plan of the change instead, as \`rdctl plan\` does, also if no service is running, and exits with 3 if
a change would be refused.

  rdctl set --virtual-machine.memory-in-gb 8
  rdctl set --virtual-machine.memory-in-gb 8 --dry-run`,
  flags: {
    ...SETTING_FLAG_TABLE,
    'dry-run': { type: 'boolean', summary: 'Only show what would change, and what it would cost' },
  },
  classic: true,
  async run(invocation) {
    const { args, flags, given, io, connect } = invocation;
    noArguments(args, 'set', valueAdvice(args, given));
    const settings = givenSettings(given, platformName(io.platform));
    if (flags['dry-run'] === true) {
      requireSome(settings);
      const { dryRun } = await import('./set/dry-run.ts');
      return dryRun(settings, 'unmanaged', invocation);
    }
    const client = createClient(await connect());
    requireSome(settings);
    await writeSettings(client, settings, io);
    await requireFiles(client, settings, io);
    return 0;
  },
});

/** Settings that control files of the user before anything restarts. */
const DECIDED_FILES = new Map([
  ['application.pathManagementStrategy', 'path'],
  ['application.autoStart', 'autostart'],
  ['containerEngine.name', 'docker-context'],
  ['kubernetes.enabled', 'kubeconfig'],
] as const);

/** Throws `ERR_USER_FILES` if files that these settings control could not be changed. */
async function requireFiles(client: LifecycleClient, settings: readonly GivenSetting[], io: Io): Promise<void> {
  const parts = [...DECIDED_FILES].flatMap(([path, part]) =>
    settings.some(({ row }) => row.path === path) ? [part] : [],
  );
  if (parts.length === 0) return;
  // The write was answered; another application given by flags has no such status, and a service may be ending.
  const status = await client.status({ signal: io.signal }).catch(() => undefined);
  const error = status && userFilesError(status, parts);
  if (error) throw error;
}

function requireSome(settings: readonly GivenSetting[]): void {
  if (settings.length === 0) throw usage('set command: no settings to change were given');
}

/** The body that was sent and the resulting version of the desired state, if the server reports it. */
interface SentSettings {
  body: JsonObject;
  generation: number | undefined;
}

/** Sends the named settings in one PUT, and prints the server's reply. */
export async function writeSettings(
  client: SettingsClient & PlanClient,
  settings: readonly GivenSetting[],
  io: Io,
): Promise<SentSettings> {
  const body = await bodyFor(client, settings, io);
  const { version: _, ...named } = body;
  await printConsequences(client, { settings: named, state: 'unmanaged', prune: [] }, io);
  const reply = await client.putSettings(body, { signal: io.signal });
  const text = reply.text.trim();
  io.out(text === '' ? 'Operation successfully returned with no output.\n' : `Status: ${text}.\n`);
  for (const key of reply.ignoredKeys)
    io.err(`The service does not recognize the setting ${key} and did not store it.\n`);
  if (settings.some(({ row }) => row.path === 'containerEngine.allowedImages.patterns')) {
    const { patternWarnings } = await import('../../src/allowed-images/pattern.ts');
    for (const warning of patternWarnings(body)) io.err(`warning: ${warning}\n`);
  }
  return { body, generation: reply.generation };
}

/**
 * Returns the body to send, after reading the live settings: nothing is sent to a program that has none. An older application gets the settings in
 * its own shape; a newer one gets its own version and a warning here. Throws `ERR_SETTINGS_INVALID` naming the flag of the first unsupported setting.
 */
async function bodyFor(client: SettingsClient, settings: readonly GivenSetting[], io: Io): Promise<JsonObject> {
  const { settings: stored } = await client.settings({ signal: io.signal });
  const { version: live } = stored;
  // An older application keeps its maps elsewhere. If the live ones are not found, only the named entries are sent.
  const body = settingsPayload(settings, SCHEMA_VERSION, stored);
  if (typeof live !== 'number' || live === SCHEMA_VERSION) return body;
  if (live > SCHEMA_VERSION) {
    io.err(
      `The application has settings version ${live}; rdctl supports ${SCHEMA_VERSION} and changes only the named settings.\n`,
    );
    return settingsPayload(settings, live, stored);
  }
  const { downgrade, missingIn } = await import('../../src/settings/downgrade.ts');
  const [missing] = missingIn(live, body);
  if (!missing) return downgrade(body, live);
  const flag = settings.find(({ row }) => row.path === missing.path)?.typed ?? missing.path;
  throw new RdError('ERR_SETTINGS_INVALID', `option --${flag} ${missing.needs}; the application has version ${live}`);
}

import type { Client } from '../src/client/client.ts';
import { RdError } from '../src/errors.ts';
import { SCHEMA_VERSION } from '../src/settings/settings.gen.ts';
import type { Io } from './command.ts';
import { type GivenSetting, settingsPayload } from './setting-flags.ts';

/**
 * Sends the settings that were named, in one PUT, and prints the server's sentence. Returns the version of the desired state
 * after it, where the server tells.
 */
export async function writeSettings(
  client: Client,
  settings: readonly GivenSetting[],
  io: Io,
): Promise<number | undefined> {
  const version = await versionFor(client, settings, io);
  const reply = await client.putSettings(settingsPayload(settings, version), { signal: io.signal });
  const text = reply.text.trim();
  io.out(text === '' ? 'Operation successfully returned with no output.\n' : `Status: ${text}.\n`);
  for (const key of reply.ignoredKeys) io.err(`The service does not know the setting ${key} and did not store it.\n`);
  return reply.generation;
}

/**
 * The version that the payload names. Our own service speaks ours. Another application is asked: an older one gets its own
 * version and only fields that it has at the same place, a newer one its own version and a warning here.
 * Throws `ERR_SETTINGS_INVALID` naming the first flag that is too new.
 */
async function versionFor(client: Client, settings: readonly GivenSetting[], io: Io): Promise<number> {
  if (!client.connection.foreign && client.connection.file !== undefined) return SCHEMA_VERSION;
  const { version: live } = (await client.settings({ signal: io.signal })).settings;
  if (typeof live !== 'number' || live === SCHEMA_VERSION) return SCHEMA_VERSION;
  if (live > SCHEMA_VERSION) {
    io.err(
      `The application has settings version ${live}; rdctl knows ${SCHEMA_VERSION} and touches only what is named.\n`,
    );
    return live;
  }
  const tooNew = settings.find(({ row }) => row.since > live);
  if (tooNew) {
    throw new RdError(
      'ERR_SETTINGS_INVALID',
      `option --${tooNew.typed} needs settings version ${tooNew.row.since}; the application has version ${live}`,
    );
  }
  return live;
}

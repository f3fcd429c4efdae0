import type { DeploymentInput } from '../profiles/document/deployment-input.ts';
import type { Source } from '../profiles/document/source.ts';
import { RdError } from '../src/errors.ts';
import type { Platform } from '../src/settings/field.ts';
import type { Io } from './command.ts';
import type { CreateProfile } from './create-profile-request.ts';
import { openError } from './input.ts';
import { quote } from './literals.ts';

/**
 * What `--input`, `--body` or `--from-settings` says.
 * @throws RdError `ERR_IO` with the text of the compatible tool (tool facts, 7.2), `ERR_PROFILE_INVALID`, and what a call fails with.
 */
export async function deploymentInput(invocation: CreateProfile, platform: Platform): Promise<DeploymentInput> {
  const { flags, io } = invocation;
  const { strict = false } = flags;
  const { readDeploymentInput, settingsInForce } = await import('../profiles/document/deployment-input.ts');
  if (flags['from-settings']) {
    const { createClient } = await import('../src/client/client.ts');
    const { settings } = await createClient(await invocation.connect()).settings({ signal: io.signal });
    return settingsInForce(settings, platform);
  }
  if (flags.input) {
    const source = await readInputFile(flags.input, io);
    await refuseDeploymentFile(source);
    return readDeploymentInput(source, platform, { strict });
  }
  const bytes = Buffer.from(flags.body ?? '');
  return readDeploymentInput({ name: '--body', label: '--body', bytes, size: bytes.length }, platform, { strict });
}

/** What other commands read, and what this one writes. JSON is settings here, whatever it is elsewhere. */
async function refuseDeploymentFile(source: Source): Promise<void> {
  const { importerFor } = await import('../profiles/formats/index.ts');
  // The beginning shows what it is, however long the rest.
  const importer = await importerFor({ ...source, size: source.bytes.length });
  if (!importer || importer.name === 'json') return;
  throw new RdError(
    'ERR_PROFILE_INVALID',
    `${source.label} is a deployment profile already (${importer.name}), and settings in JSON or YAML are expected`,
    {
      advice: `rdctl import-profile ${quote(source.name)} --out-file profile.yaml makes a profile of it that can be given here.`,
    },
  );
}

async function readInputFile(name: string, io: Io): Promise<Source> {
  const { readSource } = await import('../profiles/document/source.ts');
  try {
    return await readSource(name, { cwd: io.cwd, readStdin: (limit) => io.readStdin(limit) });
  } catch (error) {
    throw error instanceof RdError ? openError(name, error.cause) : error;
  }
}

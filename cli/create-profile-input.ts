import type { DeploymentInput } from '../profiles/deployment/input.ts';
import type { Source } from '../profiles/source.ts';
import { RdError } from '../src/errors.ts';
import type { Platform } from '../src/settings/field.ts';
import type { Io } from './command.ts';
import type { CreateProfile } from './create-profile-request.ts';
import { openError } from './input.ts';

/**
 * What `--input`, `--body` or `--from-settings` says.
 * @throws RdError `ERR_IO` with the text of the compatible tool (tool facts, 7.2), `ERR_PROFILE_INVALID`, and what a call fails with.
 */
export async function deploymentInput(invocation: CreateProfile, platform: Platform): Promise<DeploymentInput> {
  const { flags, io } = invocation;
  const { readDeploymentInput, settingsInForce } = await import('../profiles/deployment/input.ts');
  if (flags['from-settings']) {
    const { createClient } = await import('../src/client/client.ts');
    const { settings } = await createClient(await invocation.connect()).settings({ signal: io.signal });
    return settingsInForce(settings, platform);
  }
  if (flags.input) return readDeploymentInput(await readInputFile(flags.input, io), platform);
  const bytes = Buffer.from(flags.body ?? '');
  return readDeploymentInput({ name: '--body', label: '--body', bytes, size: bytes.length }, platform);
}

async function readInputFile(name: string, io: Io): Promise<Source> {
  const { readSource } = await import('../profiles/source.ts');
  try {
    return await readSource(name, { cwd: io.cwd, readStdin: () => io.readStdin() });
  } catch (error) {
    throw error instanceof RdError ? openError(name, error.cause) : error;
  }
}

import { resolve } from 'node:path';
import type { DeploymentInput } from '../../../profiles/document/deployment-input.ts';
import type { Source } from '../../../profiles/document/source.ts';
import {
  type Hive,
  PARTS,
  type Part,
  REGISTRY_ENCODINGS,
  type RegistryEncoding,
} from '../../../profiles/formats/format.ts';
import { EXPORTERS } from '../../../profiles/formats/index.ts';
import { RdError } from '../../../src/errors.ts';
import type { Platform } from '../../../src/settings/field.ts';
import { openError, outFilePath } from '../../arguments/files.ts';
import { quote, usage } from '../../arguments/values.ts';
import type { FlagTable, Invocation, Io } from '../../command.ts';

/** The format that is generated from the settings schema rather than by an exporter. */
const TEMPLATES = 'admx';
const HIVES: readonly Hive[] = ['hklm', 'hkcu'];

/** The flags of `create-profile`. The format names come from the exporter list, which loads no exporter. */
export const FLAGS = {
  output: {
    type: 'string',
    summary: `Format: ${[...Object.keys(EXPORTERS), TEMPLATES].join(', ')}`,
    offers: [...Object.keys(EXPORTERS), TEMPLATES],
    placeholder: 'FORMAT',
  },
  input: { type: 'string', summary: 'File with settings or a profile, or `-` for standard input', placeholder: 'FILE' },
  body: { type: 'string', short: 'b', summary: 'Settings as text', placeholder: 'JSON' },
  'from-settings': { type: 'boolean', summary: 'Use the current settings' },
  hive: {
    type: 'string',
    summary: 'For reg: hklm for all users, hkcu for the current one (default hklm)',
    offers: HIVES,
    placeholder: 'HIVE',
  },
  type: {
    type: 'string',
    summary: 'For reg: locked or defaults, like --part (default locked)',
    offers: PARTS,
    placeholder: 'TYPE',
  },
  part: {
    type: 'string',
    summary: 'For other formats: locked applies at every start, defaults at the first (default locked)',
    offers: PARTS,
    placeholder: 'PART',
  },
  encoding: {
    type: 'string',
    summary: 'For reg: utf-8, or utf-16le, which regedit needs for non-ASCII characters (default utf-8)',
    offers: REGISTRY_ENCODINGS,
    placeholder: 'NAME',
  },
  only: { type: 'strings', summary: 'Include only this setting or section; repeatable', placeholder: 'SETTING' },
  except: { type: 'strings', summary: 'Exclude this setting or section; repeatable', placeholder: 'SETTING' },
  'changed-only': { type: 'boolean', summary: 'Include only settings that differ from the platform defaults' },
  'keep-version': { type: 'boolean', summary: 'Do not migrate settings of an older version' },
  'out-file': { type: 'string', summary: 'Write to this file instead of standard output', placeholder: 'FILE' },
  'out-dir': {
    type: 'string',
    summary: 'Write to this directory, using the file name that the platform expects',
    placeholder: 'DIR',
  },
  check: { type: 'boolean', summary: 'Warn about settings that the newest release would refuse or ignore' },
  strict: { type: 'boolean', summary: 'Like --check, and write nothing if there are warnings' },
} as const satisfies FlagTable;

export type CreateProfile = Invocation<typeof FLAGS>;

export type ProfileRequest =
  | { what: 'templates'; directory: string }
  | {
      what: 'profile';
      /** Key of `EXPORTERS`. */
      format: string;
      part: Part;
      hive: Hive;
      encoding: RegistryEncoding;
      /** Absolute path; absent for standard output. In a directory the format names the file. */
      destination?: { file: string } | { directory: string };
    };

/**
 * Checks the flags in the order and with the messages of Rancher Desktop's `rdctl`, then the additional ones.
 * @throws RdError `ERR_USAGE`.
 */
export function requestOf(invocation: CreateProfile): ProfileRequest {
  const { flags, io } = invocation;
  const format = formatOf(flags.output);
  if (format === TEMPLATES) return templates(invocation);
  requireSource(invocation);
  const registry = format === 'reg' ? registryFlags(invocation) : otherFlags(invocation, format);
  const file = flags['out-file'];
  const directory = flags['out-dir'];
  if (file !== undefined && directory !== undefined) throw usage('--out-file and --out-dir cannot be used together');
  if (directory === '') throw usage('--out-dir requires a non-empty name');
  const path = outFilePath(file, io);
  return {
    what: 'profile',
    format,
    ...registry,
    ...(path === undefined ? {} : { destination: { file: path } }),
    ...(directory ? { destination: { directory: resolve(io.cwd, directory) } } : {}),
  };
}

/** Returns the error for a stray argument, which usually means `--input`, worded as in Rancher Desktop's `rdctl`. */
export function strayArgument(word: string): RdError {
  const message = `unknown command ${quote(word)} for "rdctl create-profile"`;
  return usage(message, `Specify a settings file with --input FILE: --input ${quote(word)}`);
}

function formatOf(output: string | undefined): string {
  const others = [...Object.keys(EXPORTERS), TEMPLATES].filter((name) => name !== 'plist' && name !== 'reg');
  const advice = `There are also ${others.map(quote).join(', ')}.`;
  if (!output) throw usage('an "--output FORMAT" option of either "plist" or "reg" must be specified', advice);
  if (output === TEMPLATES || Object.hasOwn(EXPORTERS, output)) return output;
  throw usage(
    `received unrecognized "--output FORMAT" option of ${quote(output)}; "plist" or "reg" must be specified`,
    advice,
  );
}

function requireSource({ flags }: CreateProfile): void {
  const sources = [flags.input, flags.body, flags['from-settings']].filter(Boolean).length;
  const exactly = 'must specify exactly one input format of "--input FILE|-", "--body|-b STRING", or "--from-settings"';
  if (sources === 0) throw usage(`no input format specified: ${exactly}`);
  if (sources > 1) throw usage(`too many input formats specified: ${exactly}`);
}

type FormatFlags = Pick<Extract<ProfileRequest, { what: 'profile' }>, 'part' | 'hive' | 'encoding'>;

function registryFlags({ flags, given }: CreateProfile): FormatFlags {
  const hive = HIVES.find((name) => name === (flags.hive || 'hklm').toLowerCase());
  if (!hive) throw usage(`invalid registry hive of ${quote(flags.hive ?? '')} specified, must be "hklm" or "hkcu"`);
  const part = PARTS.find((name) => name === (flags.type || 'locked').toLowerCase());
  if (!part) {
    throw usage(`invalid registry type of ${quote(flags.type ?? '')} specified, must be "defaults" or "locked"`);
  }
  if (given.some(({ name }) => name === 'part'))
    throw usage(`--part can't be specified with "reg"; use --type instead`);
  const encoding = REGISTRY_ENCODINGS.find((name) => name === (flags.encoding ?? 'utf-8').toLowerCase());
  if (!encoding) {
    throw usage(`invalid encoding of ${quote(flags.encoding ?? '')} specified, must be "utf-8" or "utf-16le"`);
  }
  return { part, hive, encoding };
}

function otherFlags({ flags, given }: CreateProfile, format: string): FormatFlags {
  const has = (flag: string) => given.some(({ name }) => name === flag);
  // An empty value counts as not given.
  if (flags.hive || flags.type) {
    throw usage(
      `registry hive and type can't be specified with ${quote(format)}`,
      flags.type ? 'Use --part locked or --part defaults.' : undefined,
    );
  }
  const part = PARTS.find((name) => name === (flags.part ?? 'locked').toLowerCase());
  if (!part) throw usage(`invalid part of ${quote(flags.part ?? '')} specified, must be "locked" or "defaults"`);
  if (has('encoding')) throw usage(`--encoding can't be specified with ${quote(format)}, which is always UTF-8`);
  return { part, hive: 'hklm', encoding: 'utf-8' };
}

function templates({ flags, given, io }: CreateProfile): ProfileRequest {
  const other = given.find(({ name, value }) => !['output', 'out-dir', 'strict'].includes(name) && value !== false);
  if (other) {
    throw usage(
      `--${other.typed} can't be specified with "admx"`,
      'Its policies cover every setting and both parts; values are set in the policy editor.',
    );
  }
  const directory = flags['out-dir'];
  if (!directory) throw usage('"admx" is more than one file: an "--out-dir DIR" option must be specified');
  return { what: 'templates', directory: resolve(io.cwd, directory) };
}

/**
 * Reads the settings from `--input`, `--body` or `--from-settings`.
 * @throws RdError `ERR_IO`, `ERR_PROFILE_INVALID`, and the errors of an API call.
 */
export async function deploymentInput(invocation: CreateProfile, platform: Platform): Promise<DeploymentInput> {
  const { flags, io } = invocation;
  const { strict = false } = flags;
  const { readDeploymentInput, settingsInForce } = await import('../../../profiles/document/deployment-input.ts');
  if (flags['from-settings']) {
    const { createClient } = await import('../../../src/client/client.ts');
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

/** Rejects the formats that this command writes. JSON always means settings here. */
async function refuseDeploymentFile(source: Source): Promise<void> {
  const { importerFor } = await import('../../../profiles/formats/index.ts');
  // The beginning identifies the format, so the length does not matter.
  const importer = await importerFor({ ...source, size: source.bytes.length });
  if (!importer || importer.name === 'json') return;
  throw new RdError(
    'ERR_PROFILE_INVALID',
    `${source.label} is already a deployment profile (${importer.name}); settings in JSON or YAML are expected`,
    {
      advice: `Convert it first: rdctl import-profile ${quote(source.name)} --out-file profile.yaml`,
    },
  );
}

async function readInputFile(name: string, io: Io): Promise<Source> {
  const { readSource } = await import('../../../profiles/document/source.ts');
  try {
    return await readSource(name, { cwd: io.cwd, readStdin: (limit) => io.readStdin(limit) });
  } catch (error) {
    throw error instanceof RdError ? openError(name, error.cause) : error;
  }
}

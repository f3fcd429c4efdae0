import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { JoinedParts } from '../../profiles/document/imported-profile.ts';
import { readSource, type Source } from '../../profiles/document/source.ts';
import { type ImportedPart, type Importer, PARTS, type Part, PROFILE_LIMIT } from '../../profiles/formats/format.ts';
import { importerFor, nameMismatch } from '../../profiles/formats/index.ts';
import { RdError } from '../../src/errors.ts';
import { PLATFORM_NAMES, type Platform } from '../../src/settings/field.ts';
import { formatFindings } from '../../src/settings/issue.ts';
import { isUtf16, SIZE_LIMIT } from '../../src/settings/source-text.ts';
import { outFilePath, schemaAddress, writeOutFile } from '../arguments/files.ts';
import { usage } from '../arguments/values.ts';
import { defineCommand, type Invocation, type Io } from '../command.ts';
import { plainText } from '../views/text.ts';

const FLAGS = {
  force: { type: 'boolean', summary: 'Overwrite an existing file' },
  'from-system': { type: 'boolean', summary: 'Read the deployment profiles of this computer' },
  'out-file': { type: 'string', summary: 'Write to this file instead of standard output', placeholder: 'FILE' },
  output: { type: 'string', short: 'o', summary: 'Output format', values: ['yaml', 'json'] },
  part: {
    type: 'string',
    summary: 'Import only this part, and assume it for files whose name does not indicate one',
    values: PARTS,
  },
  report: { type: 'string', summary: 'Write a JSON report of kept, changed and lost settings', placeholder: 'FILE' },
  strict: { type: 'boolean', summary: 'Write no profile and exit with 3 if anything is lost' },
} as const;

export const importProfile = defineCommand({
  name: 'import-profile',
  summary: 'Convert deployment profiles to a profile',
  usage: '(FILE... | --from-system)',
  description: `Reads property lists (XML and binary), Apple configuration profiles, registry files,
Registry.pol, and the JSON files of Linux, and prints one profile: settings, and which of
them are locked. - is standard input. The part of a property list or JSON file follows from its
name (locked.json); otherwise specify --part. Older versions are migrated.
Changed and lost settings are reported on stderr. A secret is never written; the
profile refers to an environment variable instead.
Exit codes: 0 success; 3 not a readable profile, or settings were lost with --strict;
1 failure.

  rdctl import-profile locked.reg defaults.reg --out-file team.yaml
  rdctl import-profile --from-system -o json --report report.json`,
  flags: FLAGS,
  classic: false,
  async run(invocation) {
    const { flags, io } = invocation;
    const path = outFilePath(flags['out-file'], io);
    const report = outFilePath(flags.report, io, 'report');
    if (report !== undefined && (await isAmong(report, [path ?? '', ...invocation.args], io.cwd))) {
      throw usage(`--report ${flags.report} names an input or output file`);
    }
    const found = await partsFor(invocation);
    const [{ importedProfile, joinParts, profileDocument }, { importedText, jsonText }, { reportJson, reportText }] =
      await Promise.all([
        import('../../profiles/document/imported-profile.ts'),
        import('../../profiles/document/write.ts'),
        import('../views/import-report-text.ts'),
      ]);
    const joined = joinParts(found.parts);
    refuseUnread(joined);
    const profile = importedProfile(joined);
    const { settings, locked } = profile;
    const sources = found.parts.map(({ source }) => source);
    const text =
      flags.output === 'json'
        ? `${jsonText(profileDocument(profile), 2)}\n`
        : importedText({ settings, locked, schema: schemaAddress(io, path), sources });
    const warnings = warningsFor(joined, text);
    for (const line of found.notices) io.err(`${plainText(`Note: ${line}`)}\n`);
    for (const line of warnings) io.err(`${plainText(`Warning: ${line}`)}\n`);
    io.err(reportText(profile));
    if (report !== undefined) {
      const warned = [...found.notices, ...warnings];
      await writeOutFile(report, reportJson({ ...profile, parts: found.parts, warnings: warned }), {
        mode: 0o644,
        replace: true,
      });
    }
    const lost = profile.fidelity.filter(({ outcome }) => outcome === 'lost').length;
    if (flags.strict && lost > 0) {
      throw new RdError(
        'ERR_PROFILE_INVALID',
        `${lost} ${lost === 1 ? 'item was' : 'items were'} lost; ${flags.report ? `no profile was written; the report is in ${flags.report}` : 'nothing was written'}`,
        {
          advice: 'Omit --strict to write the rest.',
        },
      );
    }
    if (path === undefined) io.out(text);
    else await writeOutFile(path, text, { mode: 0o644, replace: flags.force ?? false });
    if (path !== undefined) io.err(writtenText(String(flags['out-file']), profile.variables));
    return 0;
  },
});

type ImportProfile = Invocation<typeof FLAGS>;

/** True when the path resolves to one of the named files. */
async function isAmong(path: string, names: readonly string[], cwd: string): Promise<boolean> {
  const reached = (at: string) => realpath(at).catch(() => at);
  const others = names.filter((name) => name !== '').map((name) => reached(resolve(cwd, name)));
  return (await Promise.all(others)).includes(await reached(path));
}

/** Returns the message about a written file. `rdctl validate` resolves secrets and needs their sources. */
function writtenText(name: string, variables: readonly string[]): string {
  const check = `rdctl validate ${name}\n`;
  if (variables.length === 0) return `Wrote ${name}. Check it with: ${check}`;
  return `Wrote ${name}. It reads a secret from ${variables.join(' and ')}; with that set, check it with: ${check}`;
}

async function partsFor({ flags, args, io }: ImportProfile): Promise<FoundParts> {
  const part = PARTS.find((each) => each === flags.part);
  if (flags['from-system'] && args.length > 0) throw usage('FILE and --from-system cannot be used together');
  if (!flags['from-system'] && args.length === 0) throw usage('no FILE or --from-system specified');
  if (args.filter((name) => name === '-').length > 1) throw usage('standard input (-) can be specified only once');
  if (flags.force && flags['out-file'] === undefined) throw usage('--force requires --out-file');
  return flags['from-system'] ? partsOfSystem(part, io) : partsOfFiles(args, part, io);
}

function refuseUnread({ unread }: JoinedParts): void {
  if (unread.length === 0) return;
  throw new RdError('ERR_PROFILE_INVALID', 'cannot read a profile without a known version:', {
    details: formatFindings(unread),
  });
}

/** Returns warnings about values that the application rejects on some computers, or that have no effect here. */
function warningsFor({ warnings }: JoinedParts, text: string): string[] {
  const size = Buffer.byteLength(text);
  const large = `the result has ${(size / SIZE_LIMIT).toFixed(1)} MiB; YAML and JSON documents are limited to 1 MiB.`;
  return [...formatFindings(warnings), ...(size > SIZE_LIMIT ? [large] : [])];
}

type FoundPart = ImportedPart & { platform: Platform; format: string };

/** The parts found, with warnings. */
interface FoundParts {
  parts: FoundPart[];
  notices: string[];
}

/**
 * Returns the parts in the given files. A part of unspecified kind counts as `wanted`, or as locked; with `wanted`, others are left out.
 * @throws RdError `ERR_IO` for an unreadable file, `ERR_PROFILE_INVALID` for one that is not understood or has no such part.
 */
async function partsOfFiles(names: readonly string[], wanted: Part | undefined, io: Io): Promise<FoundParts> {
  const parts: FoundPart[] = [];
  const notices: string[] = [];
  for (const name of names) {
    const source = await readSource(name, { cwd: io.cwd, readStdin: (limit) => io.readStdin(limit) }, PROFILE_LIMIT);
    if (source.size === 0) throw new RdError('ERR_PROFILE_INVALID', `${source.label} is empty`);
    const importer = (await importerFor(source)) ?? (await readerOfBroken(source));
    const found = await importer.read(source.bytes, source.label);
    const wrong = nameMismatch(source.label, importer.name);
    if (wrong)
      notices.push(`${source.label}: ${wrong.reason}, which ${PLATFORM_NAMES[wrong.platform]} would not read.`);
    for (const part of found) {
      if (part.part === undefined && wanted === undefined) {
        notices.push(
          `${part.source} does not indicate its part and is treated as locked; for defaults, use --part defaults.`,
        );
      }
      parts.push({
        ...part,
        part: part.part ?? wanted ?? 'locked',
        platform: importer.platform,
        format: importer.name,
      });
    }
  }
  return chooseParts(parts, wanted, notices);
}

/**
 * Returns the deployment profiles in force on this computer.
 * @throws RdError `ERR_NOT_FOUND` with every location searched, when there is none.
 */
async function partsOfSystem(wanted: Part | undefined, io: Io): Promise<FoundParts> {
  const { systemParts } = await import('../../profiles/policies/read.ts');
  const { policySources } = await import('../arguments/environment.ts');
  const { parts, looked } = await systemParts(policySources(io, io.platform));
  if (parts.length === 0) {
    throw new RdError('ERR_NOT_FOUND', 'this computer has no deployment profiles', {
      details: looked.map((place) => `looked at ${place}`),
    });
  }
  const format = { darwin: 'plist', linux: 'json', win32: 'registry' } as const;
  return chooseParts(
    parts.map((part) => ({ ...part, format: format[part.platform] })),
    wanted,
    [],
  );
}

function chooseParts(parts: FoundPart[], wanted: Part | undefined, notices: string[]): FoundParts {
  const notes = [...notices, ...parts.flatMap((part) => part.notes ?? [])];
  if (wanted === undefined) return { parts, notices: notes };
  const kept = parts.filter(({ part }) => part === wanted);
  const others = parts.filter(({ part }) => part !== wanted);
  if (kept.length === 0) {
    throw new RdError('ERR_PROFILE_INVALID', `the input contains no ${wanted} profile`, {
      details: others.map(({ source, part }) => `${source} is the ${part} profile`),
      advice: 'Omit --part; it selects among profiles that indicate their part.',
    });
  }
  return {
    parts: kept,
    notices: [...notes, ...others.map(({ source }) => `${source} was skipped because of --part ${wanted}.`)],
  };
}

/** Returns an importer that reports syntax errors of intended JSON, which a comparison would read as YAML. */
async function readerOfBroken({ bytes, label }: Source): Promise<Importer> {
  const { isBrokenJson, jsonImporter } = await import('../../profiles/formats/json.ts');
  if (isBrokenJson(bytes) || isUtf16(bytes)) return jsonImporter;
  throw new RdError('ERR_PROFILE_INVALID', `${label} is not a deployment file`, {
    details: ['Supported are property lists, .mobileconfig, .reg, Registry.pol, and JSON settings.'],
    advice: 'A profile in YAML or JSON needs no import: check it with `rdctl validate`.',
  });
}

import { readSource, type Source } from '../../../profiles/document/source.ts';
import { type ImportedPart, type Importer, type Part, PROFILE_LIMIT } from '../../../profiles/formats/format.ts';
import { importerFor, wrongName } from '../../../profiles/formats/index.ts';
import { RdError } from '../../../src/errors.ts';
import { PLATFORM_NAMES, type Platform } from '../../../src/settings/field.ts';
import { supportedPlatform } from '../../arguments/platform.ts';
import type { Io } from '../../command.ts';

export type FoundPart = ImportedPart & { platform: Platform; format: string };

/** The parts found, with warnings. */
export interface FoundParts {
  parts: FoundPart[];
  notices: string[];
}

/**
 * The parts in the given files. A part of unspecified kind counts as `wanted`, or as locked; with `wanted`, others are
 * left out.
 * @throws RdError `ERR_IO` for an unreadable file, `ERR_PROFILE_INVALID` for one that is not understood or has no such
 * part.
 */
export async function partsOfFiles(names: readonly string[], wanted: Part | undefined, io: Io): Promise<FoundParts> {
  const parts: FoundPart[] = [];
  const notices: string[] = [];
  for (const name of names) {
    const source = await readSource(name, { cwd: io.cwd, readStdin: (limit) => io.readStdin(limit) }, PROFILE_LIMIT);
    if (source.size === 0) throw new RdError('ERR_PROFILE_INVALID', `${source.label} is empty`);
    const importer = (await importerFor(source)) ?? (await readerOfBroken(source));
    const found = await importer.read(source.bytes, source.label);
    const wrong = wrongName(source.label, importer.name);
    if (wrong)
      notices.push(`${source.label}: ${wrong.reason}, which ${PLATFORM_NAMES[wrong.platform]} would not read.`);
    for (const part of found) {
      if (part.part === undefined && wanted === undefined) {
        notices.push(
          `${part.source} does not say which part it is and counts as locked; --part defaults makes it the other.`,
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
  return chosen(parts, wanted, notices);
}

/**
 * The deployment profiles in force on this computer.
 * @throws RdError `ERR_NOT_FOUND` with every location searched, when there is none.
 */
export async function partsOfSystem(wanted: Part | undefined, io: Io): Promise<FoundParts> {
  const { systemParts } = await import('../../../profiles/policies/read.ts');
  const { policySources } = await import('../../session/policies.ts');
  const { parts, looked } = await systemParts(policySources(io, supportedPlatform(io.platform)));
  if (parts.length === 0) {
    throw new RdError('ERR_NOT_FOUND', 'this computer has no deployment profile', {
      details: looked.map((place) => `looked at ${place}`),
    });
  }
  const format = { darwin: 'plist', linux: 'json', win32: 'registry' } as const;
  return chosen(
    parts.map((part) => ({ ...part, format: format[part.platform] })),
    wanted,
    [],
  );
}

function chosen(parts: FoundPart[], wanted: Part | undefined, notices: string[]): FoundParts {
  const notes = [...notices, ...parts.flatMap((part) => part.notes ?? [])];
  if (wanted === undefined) return { parts, notices: notes };
  const kept = parts.filter(({ part }) => part === wanted);
  const others = parts.filter(({ part }) => part !== wanted);
  if (kept.length === 0) {
    throw new RdError('ERR_PROFILE_INVALID', `there is no ${wanted} profile in what was given`, {
      details: others.map(({ source, part }) => `${source} is the ${part} profile`),
      advice: 'Leave --part out: it chooses among profiles that say which part they are.',
    });
  }
  return {
    parts: kept,
    notices: [...notes, ...others.map(({ source }) => `${source} was left out because of --part ${wanted}.`)],
  };
}

/** Reports syntax errors of intended JSON, which a comparison would read as YAML. */
async function readerOfBroken({ bytes, label }: Source): Promise<Importer> {
  const { isBrokenJson, jsonImporter } = await import('../../../profiles/formats/json.ts');
  if (isBrokenJson(bytes)) return jsonImporter;
  throw new RdError('ERR_PROFILE_INVALID', `${label} is of no deployment format`, {
    details: ['Read are property lists, .mobileconfig, .reg, Registry.pol, and settings as JSON.'],
    advice: 'A profile in YAML or JSON needs no import: check it with `rdctl validate`.',
  });
}

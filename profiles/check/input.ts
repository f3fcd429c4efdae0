import { RdError } from '../../src/errors.ts';
import { isObject, type JsonObject } from '../../src/json.ts';
import { PLATFORM_NAMES, PLATFORMS, type Platform } from '../../src/settings/field.ts';
import { formatFinding, formatFindings } from '../../src/settings/issue.ts';
import { pointerTo } from '../../src/settings/leaf-paths.ts';
import type { ParsedDocument } from '../../src/settings/parse.ts';
import { releaseIndex } from '../../src/settings/releases.ts';
import { readDeploymentInput } from '../document/deployment-input.ts';
import { selectSettings } from '../document/selection.ts';
import { parseSource, READ_AS_JSON, type Source } from '../document/source.ts';
import { withoutReferences } from '../document/written-settings.ts';
import { type ImportedPart, type Importer, type Loss, PARTS, type Part, partOfName } from '../formats/format.ts';
import { type Content, importerFor, nameMismatch } from '../formats/index.ts';
import { hasByteOrderMark } from '../formats/json.ts';
import { ATLAS, type AtlasNode, absence, existsIn, type Place, type Section } from './atlas.ts';
import type { CheckCell, CheckFinding, CheckPart, Effect } from './finding.ts';

/** A system that looks for the file and cannot read it, with the reason as a clause. */
interface Unreadable {
  platform: Platform;
  reason: string;
}

/** One file, ready for a check. */
export interface CheckInput {
  label: string;
  format: 'yaml' | Importer['name'];
  parts: readonly CheckPart[];
  /** Values of the file that are in no part. */
  lost: readonly PlacedLoss[];
  /** Systems whose applications read such a file. */
  platforms: readonly Platform[];
  /** The system among these that cannot read the file, with the reason. */
  unreadable?: Unreadable;
  /** Place that the file goes to; absent if every release looks there, or if nothing tells. */
  goesTo?: Destination;
  /** Sentences about assumptions and omissions. */
  notices: readonly string[];
  /** Returns `file:line:column` of a setting, or of the nearest value around it; undefined in formats without lines. */
  place(names: readonly string[]): string | undefined;
}

/**
 * Splits a file into the input of `checkProfile`: a deployment file into its parts, a profile document into the two that an export would produce,
 * bare settings into one.
 * @param part the part of a file that does not name it; `locked` by default.
 * @throws RdError `ERR_PROFILE_INVALID` for a file without settings, and for a profile document with mistakes.
 */
export async function checkInput(source: Source, part: Part | undefined): Promise<CheckInput> {
  const importer = await importerFor(source);
  if (importer) return deploymentInput(source, importer, part);
  const document = parseSource(source, READ_AS_JSON.both);
  const value = settingsOf(document);
  if ('apiVersion' in value || 'kind' in value || isObject(value.settings)) return profileInput(source, document);
  const said = partOfName(source.label);
  const known = said ?? part;
  const notices = known ? ignoredPartNotices(source.label, [said], part) : [assumedPartNotice(source.label)];
  return {
    label: source.label,
    format: 'yaml',
    parts: [{ part: known ?? 'locked', settings: withoutReferences(value) }],
    lost: [],
    ...matchName(source.label, 'yaml', PLATFORMS, notices),
    place: placeIn(document, ''),
  };
}

async function deploymentInput(source: Source, importer: Importer, part: Part | undefined): Promise<CheckInput> {
  const { bytes, label } = source;
  const { name } = importer;
  const parts = await importer.read(bytes, label);
  const notices = [
    ...parts.flatMap(({ notes = [] }) => notes),
    ...ignoredPartNotices(
      label,
      parts.map((each) => each.part),
      part,
    ),
  ];
  const place = goesTo(parts, name);
  return {
    label,
    format: name,
    // References to secrets are never in a deployment profile.
    parts: parts.map((each) => ({
      part: each.part ?? part ?? 'locked',
      settings: withoutReferences(each.settings),
    })),
    lost: await placedLosses(parts, importer),
    ...matchName(
      label,
      name,
      // Settings in JSON are for all platforms, unless the file name is one that Linux reads.
      name === 'json' && partOfName(label) === undefined ? PLATFORMS : [importer.platform],
      parts.some((each) => (each.part ?? part) === undefined) ? [...notices, assumedPartNotice(label)] : notices,
    ),
    ...(name === 'json' && hasByteOrderMark(bytes) ? { unreadable: MARKED } : {}),
    ...(place ? { goesTo: place } : {}),
    // A file that is too long for a document is read anyway, without positions.
    place: name === 'json' ? placeIn(parseSource(source, READ_AS_JSON.both), '') : () => undefined,
  };
}

function goesTo(parts: readonly ImportedPart[], format: Importer['name']): Destination | undefined {
  if (format === 'mobileconfig') return 'managed';
  return parts.some(({ source }) => /\\SOFTWARE\\Policies\\/i.test(source)) ? 'policies' : undefined;
}

const MARKED: Unreadable = { platform: 'linux', reason: 'it begins with a byte order mark' };

/** Returns losses with their parts; in the registry, the place of a loss tells its part. */
async function placedLosses(parts: readonly ImportedPart[], { platform }: Importer): Promise<PlacedLoss[]> {
  const { partOfPlace } = await import('../formats/registry-parts.ts');
  return parts.flatMap(({ part, lost }) =>
    lost.map((loss): PlacedLoss => {
      const its = platform === 'win32' ? partOfPlace(loss.place) : loss.outside ? undefined : part;
      return its ? { ...loss, part: its } : loss;
    }),
  );
}

/** Returns the platforms of the format, and that of the name if it indicates a different one. */
function matchName(
  label: string,
  content: Content,
  readers: readonly Platform[],
  notices: readonly string[],
): Pick<CheckInput, 'platforms' | 'unreadable' | 'notices'> {
  const wrong = nameMismatch(label, content);
  if (!wrong) return { platforms: readers, notices };
  const notice = `${label}: ${wrong.reason}, which ${PLATFORM_NAMES[wrong.platform]} would not read.`;
  const platforms = PLATFORMS.filter((each) => readers.includes(each) || each === wrong.platform);
  return { platforms, unreadable: wrong, notices: [...notices, notice] };
}

/** Returns both parts, unless the document locks some settings and leaves nothing for the other part. */
async function profileInput(source: Source, document: ParsedDocument): Promise<CheckInput> {
  // The check reports what each platform refuses; the settings themselves do not depend on one.
  const platform = 'linux';
  const input = await readDeploymentInput(source, platform, { consequence: '' });
  const chosen = { platform, only: [], except: [], changedOnly: false, keepVersion: true, inForce: false } as const;
  const parts: CheckPart[] = [];
  for (const part of PARTS) parts.push({ part, settings: (await selectSettings(input, { ...chosen, part })).settings });
  const filled = parts.filter(({ settings }) => Object.keys(settings).length > 1);
  return {
    label: source.label,
    format: /^\s*\{/.test(Buffer.from(source.bytes.subarray(0, 256)).toString('utf8')) ? 'json' : 'yaml',
    parts: filled.length > 0 ? filled : parts,
    lost: [],
    ...matchName(
      source.label,
      'profile',
      PLATFORMS,
      input.warnings.map((warning) => `${source.label}: ${warning}`),
    ),
    place: placeIn(document, '/settings'),
  };
}

function settingsOf({ file, value, findings }: ParsedDocument): JsonObject {
  const [first] = findings;
  if (first) {
    throw new RdError('ERR_PROFILE_INVALID', formatFinding(first), { details: formatFindings(findings.slice(1)) });
  }
  if (isObject(value)) return value;
  throw new RdError('ERR_PROFILE_INVALID', `${file} contains no settings`);
}

function placeIn({ file, position }: ParsedDocument, at: string): CheckInput['place'] {
  return (names) => {
    for (let length = names.length; length > 0; length -= 1) {
      const here = position(`${at}${pointerTo(names.slice(0, length))}`, 'key');
      if (here) return `${file}:${here.line}:${here.column}`;
    }
    return undefined;
  };
}

function ignoredPartNotices(label: string, said: readonly (Part | undefined)[], wanted: Part | undefined): string[] {
  const isOther = said.some((part) => part !== undefined && part !== wanted);
  if (wanted === undefined || !isOther) return [];
  return [`${label} indicates its own part; --part is ignored for it.`];
}

function assumedPartNotice(label: string): string {
  return `${label} does not indicate its part; it is checked as the locked profile (--part overrides this).`;
}

/** A value that the reader of a format left out, and its part. */
interface PlacedLoss extends Loss {
  part?: Part;
}

/**
 * Returns the findings of a release for values that are in no part. Every release ignores or refuses them alike, but a value of the wrong type means
 * nothing to a release that does not look for its name.
 * @param release index in `RELEASES`.
 */
export function lossFindings(lost: readonly PlacedLoss[], release: number): CheckFinding[] {
  return lost.map((loss) => {
    const { part, place } = loss;
    return { ...(part ? { part } : {}), path: place, names: [place], ...effectOf(loss, release) };
  });
}

function effectOf({ names, reason, refused }: PlacedLoss, release: number): { effect: Effect; reason: string } {
  const place = refused && names ? placeOf(names) : undefined;
  if (place && !existsIn(place, release)) {
    return { effect: 'ignored', reason: absence(place, { index: release }, 'registry') };
  }
  return { effect: refused ? 'refused' : 'ignored', reason };
}

/** Returns the setting or section at the longest prefix of the names that is one. */
function placeOf(names: readonly string[]): Place | Section | undefined {
  let members = ATLAS.folded;
  let node: AtlasNode | undefined;
  for (const name of names) {
    node = members.get(name.toLowerCase());
    if (!node || 'place' in node) break;
    members = node.section.folded;
  }
  return node && ('place' in node ? node.place : node.section);
}

/** Destinations of files that some releases do not look at (documentation of the application on deployment profiles). */
const DESTINATIONS = {
  managed: { platform: 'darwin', since: '1.20', words: 'where device management writes' },
  policies: { platform: 'win32', since: '1.9', words: 'below SOFTWARE\\Policies' },
} as const;
type Destination = keyof typeof DESTINATIONS;

/**
 * Describes limits of releases that start with the settings: a release looks in another place than the file's destination, or locks less. One
 * sentence each; nothing about releases that refuse the file.
 */
export function reachNotices({ label, goesTo, parts }: CheckInput, cells: readonly CheckCell[]): string[] {
  const starting = cells.filter(({ verdict }) => verdict !== 'rejected');
  const notices: string[] = [];
  const { platform, since, words } = goesTo ? DESTINATIONS[goesTo] : { platform: undefined, since: '', words: '' };
  const blind = starting.filter(
    (cell) => cell.platform === platform && releaseIndex(cell.release) < releaseIndex(since),
  );
  if (blind.length > 0) {
    notices.push(`${label}: releases before ${since} do not read profiles ${words}.`);
  }
  if (starting.some((cell) => cell.release === '1.8' && !blind.includes(cell)) && parts.some(locksMore)) {
    notices.push(
      `${label}: release 1.8 locks only containerEngine.allowedImages; users can change the other locked settings there.`,
    );
  }
  return notices;
}

function locksMore({ part, settings }: CheckInput['parts'][number]): boolean {
  if (part !== 'locked') return false;
  const { version: _, containerEngine = {}, ...others } = settings;
  return Object.keys(others).length > 0 || Object.keys(containerEngine ?? {}).some((name) => name !== 'allowedImages');
}

import { RdError } from '../src/errors.ts';
import type { JsonObject } from '../src/json.ts';
import type { Finding } from '../src/settings/finding.ts';
import { leaves, pointerTo } from '../src/settings/leaf-paths.ts';
import { SCHEMA_VERSION } from '../src/settings/settings.gen.ts';
import { layOver } from './combine.ts';
import { idleLock, idleLocks } from './deployment/locked-part.ts';
import { type Locate, locator } from './places.ts';
import type { PortForward } from './port-forwards.ts';
import { inTextOrder } from './report.ts';
import type { SecretOrigin, SecretsContext } from './secrets.ts';
import { type HostFacts, type Part, readPart } from './settings-part.ts';
import { type DesiredState, PORT_FORWARDS } from './shape.ts';
import { readSource, type Source, type SourceContext } from './source.ts';

/** What a service is asked for: settings at the newest version, canonical, secrets resolved. */
interface DesiredRequest {
  settings: JsonObject;
  state: DesiredState;
  prune: string[];
  /** What documents of kind Profile mention; bare settings wish for nothing that is there already. */
  wishes: string[];
}

/** One or several documents laid over each other. */
export interface DesiredDocument {
  request: DesiredRequest;
  /** Where each secret came from, by setting path. */
  secrets: Record<string, SecretOrigin>;
  /** Which fields an exported policy locks; absent when no document says so. */
  locked?: JsonObject;
  /** Locks without a value in any document: no deployment profile can be made of them. Looked for when it is called. */
  idleLocks(): Finding[];
  portForwards: PortForward[];
  /** Forwards that are not listed are removed. */
  prunePortForwards: boolean;
  metadata: { name?: string; description?: string };
  /** Absolute path of each document in order; `-` for standard input. */
  files: string[];
  locate: Locate;
}

/** What one document is. */
export interface DocumentFacts {
  /** As given, or `<stdin>`. */
  file: string;
  form: 'settings' | 'profile';
  /** Version of its settings, where it has one. */
  version?: number;
}

/** `desired` is there when nothing is wrong. */
export interface LoadedDocument {
  desired?: DesiredDocument;
  documents: DocumentFacts[];
  /** Everything that is wrong, document by document in the order of the text. */
  findings: Finding[];
  warnings: string[];
}

export type LoadContext = SourceContext & SecretsContext & HostFacts;

/**
 * Reads documents of both forms and lays later ones over earlier ones: settings field by field, maps key by key, lists as a
 * whole. Throws `ERR_IO` for a source that cannot be read and `ERR_USAGE` when standard input is named twice; everything that
 * is wrong inside a document is a finding.
 */
export async function loadDesired(names: readonly string[], context: LoadContext): Promise<LoadedDocument> {
  if (names.filter((name) => name === '-').length > 1) {
    throw new RdError('ERR_USAGE', 'standard input can be read once, and -f - was given twice');
  }
  const parts: Part[] = [];
  for (const name of names) parts.push(await readPart(await readSource(name, context), context));
  const findings = parts.flatMap((part) => inTextOrder(part.findings));
  const warnings = parts.flatMap((part) => part.warnings);
  const documents = parts.map(factsOf);
  if (findings.length > 0) return { documents, findings, warnings };
  return { desired: combine(parts), documents, findings, warnings };
}

/** At the last document that says so. */
function idleIn(parts: readonly Part[], locked: JsonObject, settings: JsonObject): Finding[] {
  const paths = leaves(settings).map(([path]) => path);
  return idleLocks(locked, paths).map((path) => {
    const pointer = `/locked${pointerTo(path.split('.'))}`;
    const said = parts.findLast(({ parsed }) => parsed.position(pointer, 'key') !== undefined) ?? parts.at(-1);
    if (!said) throw new Error('locks without a document');
    return idleLock(path, said.parsed);
  });
}

function combine(parts: readonly Part[]): DesiredDocument {
  const profiles = parts.filter((part) => part.shape.form === 'profile');
  const written = parts.flatMap((part) => part.shape.state ?? []).at(-1);
  const locked = parts.flatMap((part) => (part.shape.locked ? [part.shape.locked] : []));
  const allLocked = locked.length === 0 ? undefined : locked.reduce((earlier, later) => layOver(earlier, later));
  const settings = {
    ...parts.map((part) => part.settings).reduce((earlier, later) => layOver(earlier, later), {}),
    version: SCHEMA_VERSION,
  };
  const prune = parts.flatMap((part) => (part.shape.prune ? [part.shape.prune] : [])).at(-1) ?? [];
  return {
    request: {
      settings,
      state: written ?? 'unmanaged',
      prune: prune.filter((path) => path !== PORT_FORWARDS),
      wishes: [...new Set(profiles.flatMap((part) => leaves(part.settings).map(([path]) => path)))].filter(
        (path) => path !== 'version',
      ),
    },
    secrets: Object.fromEntries(parts.flatMap((part) => Object.entries(part.secrets))),
    ...(allLocked ? { locked: allLocked } : {}),
    idleLocks: () => (allLocked ? idleIn(parts, allLocked, settings) : []),
    portForwards: parts.flatMap((part) => (part.shape.portForwards ? [part.shape.portForwards] : [])).at(-1) ?? [],
    prunePortForwards: prune.includes(PORT_FORWARDS),
    metadata: Object.fromEntries(parts.flatMap((part) => Object.entries(part.shape.metadata))),
    files: parts.map((part) => fileOf(part.source)),
    locate: locator(parts),
  };
}

function factsOf({ source, shape }: Part): DocumentFacts {
  const version = shape.settings?.version;
  return { file: source.label, form: shape.form, ...(typeof version === 'number' ? { version } : {}) };
}

function fileOf(source: Source): string {
  return source.path ?? '-';
}

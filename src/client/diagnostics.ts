import { RdError } from '../errors.ts';
import type { CheckRecord } from '../features/diagnostics/check.ts';
import { hasShape, isObject, type JsonObject, parseJson } from '../json.ts';
import type { Server } from './contract.ts';
import { notOurService } from './replies.ts';

/** The fields of a record that every application sends. */
export type Finding = Pick<CheckRecord, 'description' | 'passed' | 'id' | 'mute'> & {
  category: string;
  fixes: readonly { description: string }[];
};

/** Body of `GET` and `POST /v1/diagnostic_checks`, with muted checks marked. */
export interface Findings {
  last_update: string;
  checks: Finding[];
}

/** Milliseconds for a full run: checks run in parallel, each with a shorter limit. */
const RUN_LIMIT = 60_000;

/**
 * Reads check results; `anew` runs the checks first. Muting comes from the settings, because another application leaves
 * it to its clients.
 * @throws RdError for a rejected request or an invalid reply.
 */
export async function readFindings(client: Server, anew: boolean, settings: JsonObject): Promise<Findings> {
  const method = anew ? 'POST' : 'GET';
  const { status, body } = await client.request({ method, path: '/v1/diagnostic_checks', timeoutMs: RUN_LIMIT });
  if (status !== 200) {
    throw new RdError('ERR_CONNECTION', `the service did not return its diagnostics: ${status} ${body.toString()}`);
  }
  const report: unknown = parseJson(body.toString());
  if (!isReport(report)) throw notOurService(client.connection, '/v1/diagnostic_checks returned no checks');
  const muted = mutedIn(settings);
  const isMuted = (id: string) => muted.has(id) || muted.has(id.split(':', 1)[0] ?? '');
  return { ...report, checks: report.checks.map((check) => ({ ...check, mute: check.mute || isMuted(check.id) })) };
}

function isReport(value: unknown): value is Findings {
  return hasShape(value, { last_update: '', checks: [] as Finding[] }) && value.checks.every(isFinding);
}

function isFinding(value: unknown): boolean {
  const sample = { id: '', category: '', description: '', passed: true, fixes: [] as { description: string }[] };
  return hasShape(value, sample) && value.fixes.every((fix) => hasShape(fix, { description: '' }));
}

function mutedIn({ diagnostics }: JsonObject): ReadonlySet<string> {
  const checks = isObject(diagnostics) && isObject(diagnostics.mutedChecks) ? diagnostics.mutedChecks : {};
  return new Set(Object.keys(checks).filter((id) => checks[id] === true));
}

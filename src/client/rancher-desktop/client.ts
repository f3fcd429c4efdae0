import { RdError } from '../../errors.ts';
import { canonicalJson, isObject, type JsonObject, type JsonValue } from '../../json.ts';
import type { Target } from '../../plan/change.ts';
import { COMPATIBLE } from '../../product.ts';
import type { BackendState, Condition } from '../../reconcile/contract.ts';
import type { StatusDocument } from '../../reconcile/status-document.ts';
import { sameValue } from '../../settings/canonical.ts';
import { fillDefaults } from '../../settings/defaults.ts';
import { leafAt, leaves } from '../../settings/leaf-paths.ts';
import type { ApplyClient } from '../carry-out.ts';
import { forwardPath } from '../client.ts';
import type { CallOptions, Client, Proposal, Server, ServiceClient, SettingsReply } from '../contract.ts';
import { ANY_HOST } from '../offline.ts';
import { carryOutForeign } from './apply.ts';
import { foreignPlan } from './plan.ts';
import { keepState, readPreviousState } from './previous.ts';
import { foreignProgress, type Progress } from './progress.ts';
import { type ForeignSettings, readForeign, toForeign } from './shape.ts';

/** The application has no versions of the desired state; one number stands for all of them. */
const GENERATION = 1;

/**
 * A client of an application that speaks only `/v1` and its own settings version, over a plain client of it. Settings
 * are converted to and from our version. Their `etag` is computed here: a write rereads them just before, and throws
 * `ERR_PRECONDITION_FAILED` if they changed; it rereads them afterwards, and throws `ERR_CONVERGE_FAILED` if the values
 * are missing. A concurrent write between read and write cannot be excluded: the interface has no preconditions.
 */
export function createForeignClient(plain: ServiceClient): Client & Pick<ApplyClient, 'carryOut'> {
  const progress = foreignProgress();
  const since = new Date().toISOString();

  async function read(options?: CallOptions): Promise<ForeignSettings & SettingsReply & { etag: string }> {
    const { settings, text } = await plain.settings(options);
    const foreign = readForeign(settings);
    return { ...foreign, settings: foreign.known, text, etag: canonicalJson(settings) };
  }

  /** Returns whether a restart is due; undefined if the application does not say. */
  async function restartDue(options?: CallOptions): Promise<boolean | undefined> {
    try {
      const { raw } = await read(options);
      return Object.values(await propose(raw, options)).some((entry) => entry.desired !== undefined);
    } catch (error) {
      if (error instanceof RdError && error.code !== 'ERR_CANCELLED') return undefined;
      throw error;
    }
  }

  async function propose(body: JsonObject, options?: CallOptions): Promise<Proposal> {
    const entries = Object.entries(await plain.proposal(body, options));
    return Object.fromEntries(entries.filter(([, entry]) => isObject(entry)));
  }

  async function locked(options?: CallOptions): Promise<JsonObject> {
    return plain.locked(options).catch((error: unknown) => {
      // Releases without deployment profiles have no such list, and no locks.
      if (error instanceof RdError && error.code === 'ERR_NOT_FOUND') return {};
      throw error;
    });
  }

  const { connection, request, proposal, backendState, apply, shutdown } = plain;
  const client: ReturnType<typeof createForeignClient> = {
    foreign: true,
    connection,
    request,
    proposal,
    backendState,
    apply,
    shutdown,
    owner: `the running application (${connection.file ?? connection.host})`,
    previous: { keep: keepState, request: readPreviousState },
    unsupported: async () => [],
    carryOut: (input, made) => carryOutForeign(client, input, made),
    settings: read,
    locked,
    plan: async (request, options) => (await client.planWithLive(request, options)).plan,
    async planWithLive(request, options) {
      const settings = await read(options);
      const locks = await locked(options);
      const { vmState } = await plain.backendState(options);
      const target = foreignTarget(plain, settings.version);
      const facts = { settings, locks, vmState, target, propose: (body: JsonObject) => propose(body, options) };
      return {
        ...(await foreignPlan(request, facts)),
        live: { settings: settings.known, locks, power: powerOf(vmState), etag: settings.etag },
      };
    },
    async putSettings(body, { ifMatch, ...options } = {}) {
      const before = await read(options);
      if (ifMatch !== undefined && before.etag !== ifMatch) {
        throw new RdError('ERR_PRECONDITION_FAILED', 'the settings have changed since they were read');
      }
      const { vmState } = await plain.backendState(options);
      const reply = await plain.putSettings(toForeign(body, before.version), options);
      progress.settingsSent(reply.text, vmState);
      refuseLost(body, await read(options));
      return { ...reply, generation: GENERATION };
    },
    async setBackendState(state, options) {
      const { vmState } = await plain.backendState(options);
      const now = progress.power(state === 'STARTED' ? 'started' : 'stopped', vmState);
      const reply = now ? await plain.setBackendState(state, options) : { text: '', ignoredKeys: [] };
      return { ...reply, generation: GENERATION };
    },
    async addPortForward(forward, options) {
      const path = '/v1/port_forwarding';
      const response = await plain.request({ method: 'POST', path, body: JSON.stringify(forward), ...options });
      refuseUnlessOk(response);
    },
    async removePortForward(key, options) {
      refuseUnlessOk(await plain.request({ method: 'DELETE', path: forwardPath(key), ...options }));
    },
    async status(options) {
      const { vmState } = await plain.backendState(options);
      const settings = await read(options);
      const state = await progress.observed(vmState, () => restartDue(options));
      if (state.repeat) await plain.setBackendState(state.repeat === 'started' ? 'STARTED' : 'STOPPED', options);
      return statusOf(plain, settings, vmState, state, since);
    },
  };
  return client;
}

function powerOf(vmState: BackendState): 'started' | 'stopped' {
  return vmState === 'STOPPED' || vmState === 'STOPPING' ? 'stopped' : 'started';
}

/** Returns the target of a plan. The application does not report its release. */
function foreignTarget({ connection }: Server, settingsVersion: number): Target {
  return {
    product: COMPATIBLE.productName,
    home: connection.file ?? `http://${connection.host}:${connection.port}`,
    driver: 'its own',
    simulated: false,
    settingsVersion,
  };
}

function refuseUnlessOk({ status, statusText, body }: { status: number; statusText: string; body: Buffer }): void {
  if (status >= 200 && status < 300) return;
  const text = body.toString().trim();
  throw new RdError(status === 400 ? 'ERR_BODY_INVALID' : 'ERR_CONNECTION', text || `${status} ${statusText}`, {
    advice: 'Port forwards require a running cluster and a free host port.',
  });
}

/** Throws unless the sent values are present now: they were overwritten, or the application does not store them. */
function refuseLost(body: JsonObject, after: ForeignSettings): void {
  const lost = leaves(body).filter(
    ([path, wanted]) => path !== 'version' && !holds(path, wanted, leafAt(after.known, path)),
  );
  if (lost.length === 0) return;
  throw new RdError('ERR_CONVERGE_FAILED', 'The application accepted the settings but did not store them as sent.', {
    details: lost.map(([path]) => `${path} differs from the value sent`),
    advice: 'Another client may have changed it; apply again.',
  });
}

function holds(path: Parameters<typeof sameValue>[0], wanted: JsonValue, found: JsonValue | undefined): boolean {
  if (!isObject(wanted)) return sameValue(path, wanted, found);
  const entries = isObject(found) ? found : {};
  return Object.entries(wanted).every(([key, value]) =>
    value === null ? !Object.hasOwn(entries, key) || entries[key] === null : entries[key] === value,
  );
}

function statusOf(
  { connection }: Server,
  { version, known }: ForeignSettings,
  vmState: BackendState,
  { settled, failed, missing }: Progress,
  since: string,
): StatusDocument {
  const condition: Condition = {
    type: 'Converged',
    status: settled ? 'True' : 'False',
    reason: settled ? 'AsAsked' : failed ? 'Failed' : 'Busy',
    concern: settled ? 'none' : failed || vmState === 'ERROR' ? 'attention' : 'patience',
    message: settled
      ? ''
      : vmState === 'ERROR'
        ? `${COMPATIBLE.productName} is in state ERROR; see its log.`
        : `${COMPATIBLE.productName}: ${missing}.`,
    observedGeneration: GENERATION,
    lastTransitionTime: since,
  };
  return {
    kind: 'Status',
    formatVersion: 1,
    product: COMPATIBLE.productName,
    version: 'unknown',
    settingsVersion: version,
    pid: 0,
    home: connection.file ?? `http://${connection.host}:${connection.port}`,
    startedAt: '',
    driver: { name: 'its own', simulated: false, reason: 'another application' },
    power: powerOf(vmState),
    generation: GENERATION,
    // An error from before the last write is unrelated to it.
    observedGeneration: vmState === 'ERROR' && !failed ? 0 : GENERATION,
    converged: settled,
    backendState: vmState,
    conditions: [condition],
    machine: { state: 'unknown' },
    engines: { moby: { state: 'unknown' }, containerd: { state: 'unknown' } },
    cluster: { state: 'unknown' },
    engine: { name: fillDefaults(known, ANY_HOST).containerEngine.name, state: 'unknown' },
    phases: [],
    counters: { steps: 0, restarts: 0, resets: 0, failures: 0, settingsPuts: 0, settingsWrites: 0 },
    notices: [],
  };
}

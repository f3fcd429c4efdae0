import { RdError, type SettingsFinding } from '../errors.ts';
import type { JsonObject } from '../json.ts';
import type { Plan, PlanRequest } from '../plan/change.ts';
import { makePlan } from '../plan/plan.ts';
import { isWantedForwards } from '../plan/port-forwards.ts';
import { validateContext } from '../plan/settings-update.ts';
import type { UserFileFacts } from '../plan/user-files.ts';
import { PRODUCT } from '../product.ts';
import type { Desired } from '../reconcile/contract.ts';
import { canonicalize } from '../settings/canonical.ts';
import { explain, formatFinding, type Issue } from '../settings/issue.ts';
import { valueAt } from '../settings/leaf-paths.ts';
import { withoutRemovals } from '../settings/merge.ts';
import type { Settings } from '../settings/settings.gen.ts';
import { unknownKeys, validate } from '../settings/validate.ts';
import type { ApiContext } from './context.ts';

/** What `POST /v2/plan` and `POST /v2/apply` take. */
export const PLAN_REQUEST = {
  type: 'object',
  additionalProperties: false,
  required: ['settings', 'state', 'prune'],
  properties: {
    settings: { type: 'object' },
    state: { enum: ['started', 'stopped', 'unmanaged'] },
    prune: { type: 'array', items: { type: 'string' } },
    wishes: { type: 'array', items: { type: 'string' } },
    portForwards: {
      type: 'object',
      additionalProperties: false,
      required: ['entries', 'exclusive'],
      properties: {
        entries: {
          type: 'array',
          items: {
            type: 'object',
            additionalProperties: false,
            required: ['namespace', 'service', 'k8sPort', 'hostPort'],
            properties: {
              namespace: { type: 'string' },
              service: { type: 'string' },
              k8sPort: { description: 'Number or name of the service port.' },
              hostPort: { description: 'A number, or null to remove the forward.' },
            },
          },
        },
        exclusive: { description: 'Forwards that are not listed are removed.', type: 'boolean' },
        leaves: { description: 'Names of forwards to leave unchanged.', type: 'array', items: { type: 'string' } },
      },
    },
  },
} as const;

/** What is known beside the desired state and what was observed last. */
interface Known {
  /** The desired state in force, unless another is given. */
  desired?: Desired;
  outdated?: boolean;
  userFiles?: UserFileFacts;
}

/** The plan for a request, as the service stands now. */
export function planOf(request: PlanRequest, context: ApiContext, { desired, ...known }: Known = {}): Plan {
  const { store, driver, about, controllers, portForwards } = context;
  const { settings, power, generation } = desired ?? store.snapshot().desired;
  return makePlan({
    request,
    live: settings,
    power: context.idle ? 'stopped' : power,
    locks: store.locks,
    ...(about.lockedBy === undefined ? {} : { lockedBy: about.lockedBy }),
    driver,
    observed: controllers.observed(),
    target: { product: PRODUCT.name, home: about.home, driver: driver.name, simulated: driver.simulated },
    generation,
    ...(request.portForwards ? { forwards: portForwards.list() } : {}),
    ...known,
  });
}

/**
 * The request in canonical form.
 * @throws RdError `ERR_SETTINGS_INVALID` with every problem of the settings, `ERR_BODY_INVALID` for forwards that are none.
 */
export function checkedRequest(body: PlanRequest, context: ApiContext): PlanRequest {
  const request = { ...body, settings: canonicalize(body.settings) };
  checkSettings(request, context.store.snapshot().desired.settings, context);
  if (request.portForwards && !isWantedForwards(request.portForwards)) {
    throw new RdError('ERR_BODY_INVALID', 'portForwards: k8sPort is a number or a name, hostPort a number or null');
  }
  return request;
}

/** All problems of the document itself. Locks and refusals of the driver are part of a plan, not errors. */
function checkSettings({ settings }: PlanRequest, current: Settings, context: ApiContext): void {
  const { driver, host, kubernetesVersions } = context;
  const unlocked = validateContext(current, { driver, host, kubernetesVersions });
  const findings: SettingsFinding[] = [
    ...validate(withoutRemovals(settings), unlocked).map((issue) => ({
      pointer: issue.pointer,
      ...explain(issue, sent(issue, settings)),
    })),
    ...unknownKeys(settings).map(({ pointer, path, suggestion }) => ({
      pointer,
      message: `"${path}" is not a setting`,
      ...(suggestion === undefined ? {} : { suggestion }),
    })),
  ];
  if (findings.length === 0) return;
  const details = findings.map(formatFinding);
  throw new RdError('ERR_SETTINGS_INVALID', 'the requested settings are not valid', { details, findings });
}

/** The value that an issue is about, as JSON. */
function sent({ pointer }: Issue, settings: JsonObject): string | undefined {
  const value = valueAt(settings, pointer);
  return value === undefined ? undefined : JSON.stringify(value);
}

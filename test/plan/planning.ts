import { SIMULATED_INFO } from '../../src/drivers/machines/simulated/index.ts';
import type { Model } from '../../src/drivers/machines/simulated/model.ts';
import type { JsonObject, JsonValue } from '../../src/json.ts';
import type { Plan, PlanRequest } from '../../src/plan/change.ts';
import type { PartialRequest } from '../../src/plan/leave-out.ts';
import { makePlan, type PlanInput } from '../../src/plan/plan.ts';
import { observe } from '../../src/reconcile/observe.ts';
import { DEFAULT_BLOCKS } from '../../src/settings/blocks.gen.ts';
import { setLeaf } from '../../src/settings/leaf-paths.ts';
import type { SettingPath } from '../../src/settings/settings.gen.ts';
import { memorySimulation } from '../helpers/memory-simulation.ts';
import { runningModel, settingsWith } from '../reconcile/worlds.ts';

export const TARGET = { product: 'rdctl', home: '/home/user/.local/share/rdctl', driver: 'simulated', simulated: true };

export type Values = Partial<Record<SettingPath, JsonValue>>;

/** A request for these settings and nothing else. */
export function requestFor(values: Values, rest: Partial<PlanRequest> = {}): PlanRequest {
  const settings: JsonObject = { version: 19 };
  for (const [path, value] of Object.entries(values)) setLeaf(settings, path, value);
  return { settings, state: 'unmanaged', prune: [], ...rest };
}

type Facts = Partial<PlanInput> & { model?: Model };

/** A plan against a backend that runs with `live`, unless another state is given. */
export async function planFor(live: Values, request: PartialRequest, facts?: Facts): Promise<Plan> {
  return (await plannedFor(live, request, facts)).plan;
}

/** The same with its deed. */
export async function plannedFor(live: Values, request: PartialRequest, { model, ...rest }: Facts = {}) {
  const settings = settingsWith(live);
  const { driver } = memorySimulation({ model: model ?? runningModel(settings), now: () => 1 });
  return makePlan({
    request,
    live: settings,
    ...DEFAULT_BLOCKS,
    power: 'started',
    locks: {},
    driver: SIMULATED_INFO,
    observed: await observe(driver, new AbortController().signal),
    target: TARGET,
    generation: 7,
    ...rest,
  });
}

import { COMPATIBLE } from '../../src/product.ts';
import type { FlagTable } from '../command.ts';

/** The flag `--driver` of read-only commands. */
export const DRIVER_FLAG = {
  type: 'string',
  summary: 'Driver to plan for if no service has run yet',
  placeholder: 'NAME',
} as const;

/** The flag `--target` of commands that change more than single settings: it names an auto-discovered application. */
export const TARGET_FLAG = {
  type: 'string',
  summary: `Act on the ${COMPATIBLE.productName} installation that was found`,
  values: [COMPATIBLE.target],
} as const;

/** The flag `--timeout` of the commands that show a plan. */
export const PLAN_TIMEOUT_FLAG = {
  timeout: { type: 'duration', summary: 'How long to wait for the current state (default 1m)' },
} as const satisfies FlagTable;

/** Summary of `--adopt`, shared by the commands that start a service. */
export const ADOPT = `With RDCTL_COMPAT: take over the directories of ${COMPATIBLE.productName}, after copying its settings`;

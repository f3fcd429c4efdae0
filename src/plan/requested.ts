import { RdError, type SettingsFinding } from '../errors.ts';
import { defined } from '../json.ts';
import { readBlocks } from '../settings/blocks.ts';
import { canonicalize } from '../settings/canonical.ts';
import { explain, formatFinding } from '../settings/issue.ts';
import { valueAt } from '../settings/leaf-paths.ts';
import { withoutRemovals } from '../settings/merge.ts';
import { pastClause } from '../settings/past.ts';
import { unknownKeys, type ValidateContext, validate } from '../settings/validate.ts';
import type { PlanRequest } from './change.ts';
import { refuseTooLarge } from './request-size.ts';

/** Advice for every `ERR_SETTINGS_INVALID` that has none of its own. */
export const INVALID_ADVICE = 'Fix these errors and retry; nothing was changed.';

/**
 * Returns the request in canonical form. Locks and settings that the driver does not support are part of a plan, not errors.
 * @throws RdError `ERR_SETTINGS_INVALID` with every problem of the settings and the blocks, or because there are too many of them.
 */
export function validateRequest<R extends PlanRequest>(body: R, context: ValidateContext): R {
  refuseTooLarge(body);
  const settings = canonicalize(body.settings);
  const findings: SettingsFinding[] = [
    ...validate(withoutRemovals(settings), context).map((issue) => {
      const value = valueAt(settings, issue.pointer);
      return {
        pointer: issue.pointer,
        ...explain(issue, value === undefined ? undefined : JSON.stringify(value)),
      };
    }),
    ...unknownKeys(settings).map(({ pointer, path, suggestion }) => ({
      pointer,
      message: `"${path}" is not a setting${pastClause(path)}`,
      ...defined({ suggestion }),
    })),
  ];
  const { blocks, problems } = readBlocks(body);
  findings.push(...problems.map(({ part: _, ...finding }) => finding));
  if (findings.length > 0) {
    const details = findings.map(formatFinding);
    throw new RdError('ERR_SETTINGS_INVALID', 'the requested settings are not valid', {
      details,
      findings,
      advice: INVALID_ADVICE,
    });
  }
  return { ...body, settings, ...blocks };
}

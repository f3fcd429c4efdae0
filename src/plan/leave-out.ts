import type { Change, PlanRequest } from './change.ts';
import { changeName } from './kept.ts';

/** A setting, a map entry, a port forward, or `state`. */
export type FieldName = Pick<Change, 'path' | 'key'>;

/** A request that may leave some fields as they are. */
export interface PartialRequest extends PlanRequest {
  /** Fields that stay as they are, whatever the request says; a path without a key stands for all of its entries. */
  leaveOut?: readonly FieldName[];
}

/** Returns a predicate that is true for fields that are not left out. */
export function inclusionOf({ leaveOut = [] }: PartialRequest): (field: FieldName) => boolean {
  const names = new Set(leaveOut.map(changeName));
  return (field) => !names.has(changeName(field)) && !names.has(field.path);
}

/** Returns the request with these fields left out, beside those that already are. */
export function withoutFields(request: PartialRequest, fields: readonly FieldName[]): PartialRequest {
  return { ...request, leaveOut: [...(request.leaveOut ?? []), ...fields] };
}

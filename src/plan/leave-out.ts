import type { Change, PlanRequest } from './change.ts';
import { changeName } from './kept.ts';

/** A setting, a map entry, a port forward, or `state`. */
export type FieldName = Pick<Change, 'path' | 'key'>;

/** A request, or what it asks for apart from some fields. */
export interface PartialRequest extends PlanRequest {
  /** Fields that stay as they are, whatever the request says of them; a path without a key stands for all of its entries. */
  leaveOut?: readonly FieldName[];
}

/** Whether a field is not left out. */
export function inclusionOf({ leaveOut = [] }: PartialRequest): (field: FieldName) => boolean {
  const names = new Set(leaveOut.map(changeName));
  return (field) => !names.has(changeName(field)) && !names.has(field.path);
}

/** The request without these fields, too. */
export function withoutFields(request: PartialRequest, fields: readonly FieldName[]): PartialRequest {
  return { ...request, leaveOut: [...(request.leaveOut ?? []), ...fields] };
}

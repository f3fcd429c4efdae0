/** One violation reported by ajv: its location, the keyword, and the keyword's values. */
export interface ShapeError {
  instancePath: string;
  keyword: string;
  params: Readonly<Record<string, unknown>>;
}

/** A precompiled validator. After a call that returned false, `errors` holds every violation. */
export interface ShapeCheck<T> {
  (value: unknown): value is T;
  errors?: readonly ShapeError[] | null;
}

/** Names of a shape at each level; `true` for a value. */
export interface Members {
  readonly [name: string]: Members | true;
}

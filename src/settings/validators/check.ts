/** One violation, as ajv reports it: where in the document, which keyword, and that keyword's values. */
export interface ShapeError {
  instancePath: string;
  keyword: string;
  params: Readonly<Record<string, unknown>>;
}

/** A precompiled check. After a call that returned false, `errors` holds every violation. */
export interface ShapeCheck<T> {
  (value: unknown): value is T;
  errors?: readonly ShapeError[] | null;
}

/** Names that a shape knows at each level; `true` where a value stands. */
export interface Members {
  readonly [name: string]: Members | true;
}

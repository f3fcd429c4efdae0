/** A precompiled validator. */
export type ShapeCheck<T> = (value: unknown) => value is T;

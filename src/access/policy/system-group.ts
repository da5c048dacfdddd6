import { quote } from '../../kit/errors.ts';
import type { Violation } from './policy.ts';

/** Groups that Kubernetes puts people and programs into are no teams; most of them are almost everybody. */
export function systemGroup(allowedGroups: readonly string[]): Violation | undefined {
  const group = allowedGroups.find((name) => name.startsWith('system:'));
  if (group === undefined) return undefined;
  return {
    code: 'SystemGroup',
    message:
      `spec.accessConfig.allowedGroups has ${quote(group)}; groups that begin with system: are given by Kubernetes ` +
      'to whole classes of users: name the groups of the people who may ask',
    field: 'spec.accessConfig.allowedGroups',
    status: 403,
  };
}

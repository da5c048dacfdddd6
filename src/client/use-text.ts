import { grantExample, renderAccessMessage } from '../access/policy/kubectl-command.ts';
import { requestConditions } from '../api/access/names.ts';
import type { KubeObject } from '../api/object.ts';
import { conditionsOf, stateOf, statusOf } from './request-state.ts';

/** The command of the template or, if the server could not write it, one that the grant permits. */
export function useText(request: KubeObject): string {
  const { accessMessage = '', grant } = statusOf(request);
  const { pod } = stateOf(request);
  if (accessMessage !== '' || !grant || pod === '') return accessMessage.trimEnd();
  // The grant confines its rules to the pod, and an example is for any pod.
  const rules = grant.rules.map(({ apiGroups, resources, verbs }) => ({ apiGroups, resources, verbs }));
  const accessCommand = grantExample(rules) ?? '';
  const { namespace = '' } = request.metadata;
  const rendered = renderAccessMessage({ accessCommand }, { name: pod, namespace, labels: {}, annotations: {} });
  return 'text' in rendered ? rendered.text : '';
}

/** Why the command may fail, for the requester, if the server found a reason. */
export function commandNote(request: KubeObject): string {
  const { accessMessage = '' } = statusOf(request);
  const { message = '' } = conditionsOf(request).find(({ type }) => type === requestConditions.accessMessage) ?? {};
  const quoted = `\`${accessMessage}\``;
  return accessMessage !== '' && message.startsWith(`${quoted} may fail: `)
    ? `the command${message.slice(quoted.length)}`
    : '';
}

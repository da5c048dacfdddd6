import { renderAccessCommand } from '../access/policy/access-command.ts';
import type { KubeObject } from '../api/object.ts';
import { shellWord } from '../kit/shell-word.ts';
import { uncovered } from '../rbac/rule-cover.ts';
import type { ClusterConnection } from './cluster-connection.ts';
import { stateOf, statusOf } from './request-state.ts';

const target = '-n {{ .Metadata.Namespace }} {{ .Metadata.Name }}';
/** The right that a command needs, and the command. */
const examples = [
  ['pods/exec', 'create', `kubectl exec -ti ${target} -- /bin/sh`],
  ['pods/attach', 'create', `kubectl attach -ti ${target}`],
  ['pods/log', 'get', `kubectl logs -f ${target}`],
  ['pods/portforward', 'create', `kubectl port-forward ${target} 8080:8080`],
] as const;

/**
 * The command of the template or, if the server could not write it, one that the grant permits. It
 * connects as this client does.
 */
export function useText(request: KubeObject, { kubectlFlags }: Pick<ClusterConnection, 'kubectlFlags'>): string {
  const flags = kubectlFlags.map((flag) => ` ${shellWord(flag)}`).join('');
  return commandOf(request).replace(/^(kubectl|oc)(?= )/, (program) => `${program}${flags}`);
}

function commandOf(request: KubeObject): string {
  const { accessMessage = '', grant } = statusOf(request);
  const { pod } = stateOf(request);
  if (accessMessage !== '' || !grant || pod === '') return accessMessage.trimEnd();
  const [, , example = ''] =
    examples.find(([resource, verb]) => {
      const right = { apiGroups: [''], resources: [resource], verbs: [verb], resourceNames: [pod] };
      return uncovered(grant.rules, [right]).length === 0;
    }) ?? [];
  const { namespace = '' } = request.metadata;
  const rendered = renderAccessCommand(example, { name: pod, namespace, labels: {}, annotations: {} });
  return 'text' in rendered ? rendered.text : '';
}

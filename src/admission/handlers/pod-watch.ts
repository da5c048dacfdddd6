import { own } from '../../kit/json-value.ts';
import type { Handler } from '../decision.ts';
import type { AdmissionPorts } from '../ports.ts';

/** Watches who enters which pod: an Event on the pod and an audit line. It never refuses; the command itself is not recorded. */
export function watchPod(ports: Pick<AdmissionPorts, 'podEntered'>): Handler {
  return {
    decide({ subResource, namespace, name, user, object, dryRun }) {
      const container = own(object, 'container');
      const interactive = own(object, 'stdin') === true && own(object, 'tty') === true;
      const where = typeof container === 'string' && container !== '' ? container : undefined;
      if (!dryRun) {
        const verb = subResource === 'attach' ? 'attached to' : 'ran a command in';
        const how = interactive ? 'an interactive session' : 'no terminal';
        ports.podEntered({
          reason: subResource === 'attach' ? 'PodAttach' : 'PodExec',
          namespace,
          pod: name,
          note: `${user.username} ${verb} ${where === undefined ? 'the default container' : `container ${where}`} (${how})`,
        });
      }
      return { details: { pod: name, interactive, ...(where === undefined ? {} : { container: where }) } };
    },
  };
}

import type { KubeObject } from '../../api/object.ts';
import { isNotFound } from '../../kube/errors.ts';
import {
  findRequest,
  nameIn,
  requesterOf,
  requestResource,
  type TypedObject,
  typeNames,
  typeOf,
} from '../access-requests.ts';
import { usageProblem } from '../args.ts';
import { type ClusterConnection, searchedText } from '../cluster-connection.ts';
import type { Command } from '../command.ts';
import { unendedArgument } from '../command-spec.ts';
import { forEach } from '../for-each.ts';
import { outputForm } from '../output.ts';
import { Problem } from '../problem.ts';
import { cannotOpen, isFinal, stateOf, statusOf } from '../request-state.ts';
import { deleteText, endedProblem } from '../wait.ts';

export const revoke: Command = {
  name: 'revoke',
  summary: 'End access, of yours or of others, or all access of a user',
  details:
    'Open access ends, and a request that waits opens none. Users who may request access in a namespace may also revoke that of others there (patch). With --user, revokes every request of the user in the namespace, or with -A in all. Until the server has closed the access, drawbridge who lists it as Ending. A session in a pod of a workload (request exec) outlives the access, unless it is through the gateway.',
  args: [{ ...unendedArgument, optional: true, repeated: true }],
  flags: [
    { name: 'reason', value: 'TEXT', help: 'Why, for the requester and the audit.' },
    { name: 'user', value: 'NAME', help: 'Every open or waiting request of this user.' },
  ],
  examples: [
    'revoke payments-shell-x7k2p',
    "revoke payments-shell-x7k2p --reason 'incident closed'",
    'revoke --user alice -A',
  ],
  async run(context) {
    const { args, io, connect } = context;
    const form = outputForm(args);
    const [user, why] = [args.text('user'), args.text('reason')];
    if ((user === undefined) === (args.positionals.length === 0))
      throw usageProblem(
        `give either names of requests, or --user NAME; to see yours: ${io.program} list; to see all that are open: ${io.program} who`,
        'revoke',
      );
    if (user === '') throw usageProblem('--user must not be empty', 'revoke');
    const connection = await connect();
    const where = ({ object }: TypedObject): string =>
      args.has('all-namespaces') ? ` in ${object.metadata.namespace}` : '';
    const end = async (found: TypedObject) => {
      const object = await endRequest(connection, found, why);
      const follows = statusOf(object).grant ? closingText(object) : 'it had opened no access';
      const owner = requesterOf(found.object);
      // It is revoked already, so an error here changes nothing.
      const me = await connection.whoAmI().catch(() => undefined);
      const ofOwner = owner === '' || owner === me?.username ? '' : `of ${owner}: `;
      return { object, result: `${ofOwner}revocation requested${where(found)}; ${follows}` };
    };
    if (user === undefined)
      return forEach(context, form, args.positionals, async (name) =>
        end(await findRequest(connection, name, 'list --everyone')),
      );
    const found = await requestsOf(connection, user);
    if (found.length === 0) {
      const where = await searchedText(connection, typeNames.map(requestResource));
      io.printError(
        `no open or waiting request of ${user} ${where}; to see access that is still ending: ${io.program} who ${connection.scopeWhere}\n`,
      );
    }
    return forEach(context, form, found, (one) =>
      end(one).catch((error: unknown) => {
        // Deleted meanwhile, so nothing is left to revoke.
        if (isNotFound(error)) return undefined;
        throw error;
      }),
    );
  },
};

/** Those that have not ended and are not ending. */
async function requestsOf({ cluster, scope }: ClusterConnection, user: string): Promise<TypedObject[]> {
  const lists = await Promise.all(
    typeNames.map(async (type) => {
      const { items } = await cluster.client.list(requestResource(type), scope);
      return items
        .filter((item) => requesterOf(item) === user && !cannotOpen(stateOf(item).state))
        .map((object) => ({ type, object }));
    }),
  );
  return lists.flat();
}

/** After a denial or revocation of granted access, as a clause. */
export function closingText(request: KubeObject): string {
  const closing = 'the server closes the access';
  if (statusOf(request).grant?.session) return `${closing}; the gateway ends its sessions`;
  if (typeOf(request) === 'pod') return closing;
  return `${closing}; sessions that are open in its pod go on until they are closed or the pod is deleted`;
}

/** The server then closes the access. Rejects with a Problem if it has ended or is ending. */
async function endRequest(
  connection: ClusterConnection,
  { type, object }: TypedObject,
  reason: string | undefined,
): Promise<KubeObject> {
  const { state } = stateOf(object);
  if (isFinal(state)) {
    const { exitCode, message } = endedProblem(object);
    throw new Problem(exitCode, `${message}; ${deleteText(connection, object)}`);
  }
  if (cannotOpen(state)) throw endedProblem(object);
  const patch = {
    metadata: { uid: object.metadata.uid },
    spec: { revoked: true, ...(reason === undefined ? {} : { revokedReason: reason }) },
  };
  return connection.cluster.client.mergePatch(requestResource(type), nameIn(object), patch);
}

import type { RequestSpec } from '../../api/access/kinds.ts';
import type { Requester } from '../../api/access/request-spec.ts';
import { chooseExtension, type Extendable } from './extension-choice.ts';
import { showName } from './names.ts';
import { type Check, type RuleBook, refuse } from './policy.ts';
import type { Caller, TemplateState } from './request-policy.ts';

type Changeable = Pick<RequestSpec, 'templateName' | 'requester' | 'claimed' | 'extensions'>;

/** Input of the rules for an update that may claim or extend access. */
export interface ChangeInput {
  readonly caller: Caller;
  readonly oldSpec: Changeable;
  readonly spec: Changeable;
  readonly template: TemplateState;
  /** `status.approval.state` before the update; undefined until the leader has written it. */
  readonly approvalState: string | undefined;
  /** The open access of the request; undefined unless access is open. */
  readonly access: Extendable | undefined;
}

type Change = Pick<ChangeInput, 'oldSpec' | 'spec'>;

/** Whether the update sets `spec.claimed`. */
export const setsClaimed = ({ oldSpec, spec }: Change): boolean => spec.claimed === true && oldSpec.claimed !== true;

/** How many extensions the update adds. */
export const addedExtensions = ({ oldSpec, spec }: Change): number =>
  (spec.extensions?.length ?? 0) - (oldSpec.extensions?.length ?? 0);

/** Whether the user is the requester. The uids must be equal, too: the identity provider may have given the username to another person. */
export const isRequester = (
  { username, uid }: Pick<Caller, 'username' | 'uid'>,
  requester: Pick<Requester, 'username' | 'uid'> | undefined,
): boolean => requester !== undefined && requester.username === username && requester.uid === uid;

const callerIsRequester: Check<ChangeInput> = (input) => {
  const { caller, oldSpec } = input;
  if (!setsClaimed(input) && addedExtensions(input) <= 0) return undefined;
  if (isRequester(caller, oldSpec.requester)) return undefined;
  return refuse(
    'NotRequester',
    `${showName(caller.username)} is not the requester; only ${showName(oldSpec.requester?.username ?? '')} can claim or extend the access`,
    setsClaimed(input) ? 'spec.claimed' : 'spec.extensions',
    403,
  );
};

const templateExists: Check<ChangeInput> = (input) => {
  const { template, spec } = input;
  if (template.found || (!setsClaimed(input) && addedExtensions(input) <= 0)) return undefined;
  return refuse(
    'TemplateNotFound',
    `template ${showName(spec.templateName)} of the request does not exist; create a request that names an existing template`,
    'spec.templateName',
    404,
  );
};

const accessCanBeClaimed: Check<ChangeInput> = (input) => {
  const { template, spec, approvalState } = input;
  if (!setsClaimed(input) || !template.found) return undefined;
  if (template.spec.accessConfig.approvals?.claimWithin === undefined) {
    return refuse(
      'NotClaimable',
      `template ${showName(spec.templateName)} has no claimWithin, so access begins without a claim; omit spec.claimed`,
      'spec.claimed',
      422,
    );
  }
  if (approvalState === 'Claimable') return undefined;
  // An earlier claim could start the access while its requester is away.
  return refuse(
    'NotClaimable',
    `status.approval.state is ${approvalState ?? 'not set yet'}; access can be claimed only while the state is Claimable; ` +
      'wait for that state, or create a new request if this one has ended',
    'spec.claimed',
    403,
  );
};

const accessIsOpen: Check<ChangeInput> = (input) => {
  if (addedExtensions(input) <= 0 || input.access) return undefined;
  return refuse(
    'AccessNotOpen',
    'the access is not open; it can be extended from its grant to its end; create a new request if it has ended',
    'spec.extensions',
    403,
  );
};

/** Allows one undecided extension at a time: votes name an extension by its number, so approvers must know how those before it ended. */
const isOneExtension: Check<ChangeInput> = (input) => {
  const { access, oldSpec } = input;
  const added = addedExtensions(input);
  if (added <= 0 || !access) return undefined;
  if (added > 1) {
    return refuse(
      'ExtensionPending',
      `the update adds ${added} extensions; add one, and the next when it is decided`,
      'spec.extensions',
      422,
    );
  }
  const asked = oldSpec.extensions?.length ?? 0;
  if (asked <= access.decided) return undefined;
  return refuse(
    'ExtensionPending',
    `extension ${asked} is not decided yet; add the next one when status.extensions shows the decision`,
    'spec.extensions',
    403,
  );
};

const extensionIsAllowed: Check<ChangeInput> = (input) => {
  const { access, template, spec } = input;
  const asked = spec.extensions?.at(-1);
  if (addedExtensions(input) <= 0 || !access || !template.found || !asked) return undefined;
  const chosen = chooseExtension(asked, template.spec.accessConfig.extension, access);
  return 'code' in chosen ? chosen : undefined;
};

/**
 * The rule book for claims and extensions, at admission. The leader accepts only claims and extensions that the webhook signed, and checks
 * an extension again before it grants it.
 */
export const changePolicy: RuleBook<ChangeInput> = {
  'same-person': {
    requirement: 'only the requester claims or extends the access',
    check: callerIsRequester,
    remedy: () => 'ask the requester',
  },
  template: {
    requirement: 'the template exists',
    check: templateExists,
    remedy: () => 'create a request that names an existing template',
  },
  claimable: {
    requirement: 'spec.claimed is set only while the approved access waits for it',
    check: accessCanBeClaimed,
    remedy: () => 'set spec.claimed while status.approval.state is Claimable',
  },
  open: {
    requirement: 'an extension is added only while access is open',
    check: accessIsOpen,
    remedy: () => 'create a new request',
  },
  'one-extension': {
    requirement: 'an extension is added only after the one before was decided',
    check: isOneExtension,
    remedy: () => 'wait until the last extension is decided',
  },
  extension: {
    requirement: 'the template allows the extension',
    check: extensionIsAllowed,
    remedy: () => 'create a new request',
  },
};

import type { KnownBlock, PlainTextElement } from '@slack/types';

/** What Slack would refuse, by the documented limits, for the blocks that messages use. Empty if it accepts them. */
export function blockProblems(blocks: readonly KnownBlock[]): string[] {
  return [...(blocks.length > 50 ? ['more than 50 blocks'] : []), ...blocks.flatMap(problemsOf)];
}

const within = (what: string, size: number, max: number): string[] =>
  size >= 1 && size <= max ? [] : [`${what}: ${size} of 1 to ${max}`];

const plainText = (what: string, element: PlainTextElement, max: number): string[] => [
  ...within(what, element.text.length, max),
  ...(element.type === 'plain_text' ? [] : [`${what}: not plain_text`]),
  ...(/[<>]|&(?!amp;|lt;|gt;)/.test(element.text) ? [`${what}: unescaped`] : []),
  ...(element.text.isWellFormed() ? [] : [`${what}: half a character`]),
];

function problemsOf(block: KnownBlock): string[] {
  switch (block.type) {
    case 'header':
      return plainText('header', block.text, 150);
    case 'section':
      return [
        ...(block.text ? plainText('section', block.text as PlainTextElement, 3000) : []),
        ...(block.fields?.flatMap((field) => plainText('field', field as PlainTextElement, 2000)) ?? []),
        ...(block.fields ? within('fields', block.fields.length, 10) : []),
        ...(block.text || block.fields ? [] : ['section: neither text nor fields']),
      ];
    case 'context':
      return [
        ...within('context', block.elements.length, 10),
        ...block.elements.flatMap((element) => plainText('context', element as PlainTextElement, 3000)),
      ];
    case 'actions':
      return [
        ...within('actions', block.elements.length, 25),
        ...block.elements.flatMap((button) =>
          button.type === 'button'
            ? [...plainText('button', button.text, 75), ...within('url', button.url?.length ?? 0, 3000)]
            : [`actions: ${button.type}`],
        ),
      ];
    case 'rich_text':
      return block.elements.flatMap((element) =>
        element.elements.flatMap((part) =>
          part.type === 'text' ? within('text', part.text.length, 3000) : [part.type],
        ),
      );
    default:
      return [`an unexpected block ${block.type}`];
  }
}

// Shows openapi.json: each address with its parameters and answers.
"use strict";

function element(name, text, children = []) {
  const made = document.createElement(name);
  made.textContent = text;
  made.append(...children);
  return made;
}

function operation(address, { summary, parameters = [], responses }) {
  const section = element("section", "", [element("h2", `GET ${address}`), element("p", summary)]);
  const given = parameters.map(({ name, required, description = "", schema }) => {
    const limits = "minimum" in schema ? ` from ${schema.minimum} to ${schema.maximum}` : "";
    const need = required ? "required" : "optional";
    return element("li", `${name}: ${schema.type}${limits}, ${need}. ${description}`);
  });
  const answers = Object.entries(responses).map(([status, { description, content = {} }]) => {
    const kinds = Object.entries(content).map(([kind, { schema = {} }]) => {
      const form = schema.$ref ? `, ${schema.$ref.split("/").pop()}` : "";
      return ` (${kind}${form})`;
    });
    return element("li", `${status}: ${description}${kinds.join("")}`);
  });
  if (given.length) section.append(element("h3", "Parameters"), element("ul", "", given));
  section.append(element("h3", "Answers"), element("ul", "", answers));
  if (!given.some((item) => item.textContent.includes("required")) && !address.includes("{")) {
    const link = element("a", "Ask it");
    link.href = address.slice(1);
    section.append(element("p", "", [link]));
  }
  return section;
}

fetch("openapi.json").then((answer) => answer.json()).then(({ paths }) => {
  const sections = Object.entries(paths).map(([address, { get }]) => operation(address, get));
  document.getElementById("operations").replaceChildren(...sections);
});

// Opens pages in Chromium, light at the width of a desk and dark at that of a phone, and prints what is wrong as JSON.
// SHOTS is a folder for pictures of the first screen and of the whole page, or - for none.
// node look.js CHROMIUM SHOTS PAGE...   (playwright-core and axe-core resolve from the working folder)
const { createRequire } = require("module");
const path = require("path");
const local = createRequire(path.join(process.cwd(), "look.js"));
const { chromium } = local("playwright-core");
const axe = require("fs").readFileSync(local.resolve("axe-core/axe.min.js"), "utf8");
const [executablePath, shots, ...pages] = process.argv.slice(2);

async function look(browser, page, width, colorScheme) {
  // The policy of the page itself forbids every script, axe's too: it is bypassed here and tested on its own.
  const context = await browser.newContext({ viewport: { width, height: 800 }, colorScheme, bypassCSP: true });
  const tab = await context.newPage();
  const problems = [];
  const url = "file://" + path.resolve(page);
  tab.on("console", (message) => problems.push(`console ${message.type()}: ${message.text()}`));
  tab.on("pageerror", (error) => problems.push(`page error: ${error}`));
  tab.on("request", (request) => {
    if (request.url() !== url && !request.url().startsWith("data:")) problems.push(`request: ${request.url()}`);
  });
  await tab.goto(url);
  const wide = await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (wide > 0) problems.push(`scrolls sideways by ${wide} px`);
  const scripts = await tab.evaluate(() => document.scripts.length);
  if (scripts > 0) problems.push(`${scripts} scripts`);
  if (shots !== "-") {
    const name = path.join(shots, `${path.basename(page, ".html")}-${width}-${colorScheme}`);
    await tab.screenshot({ path: `${name}.png` });
    await tab.screenshot({ path: `${name}-full.png`, fullPage: true });
  }
  await tab.evaluate(axe);
  const found = await tab.evaluate(() => window.axe.run(document));
  for (const one of found.violations)
    problems.push(`axe ${one.impact} ${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
  await context.close();
  return { page: path.basename(page), width, colorScheme, problems };
}

(async () => {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const results = [];
  for (const page of pages)
    for (const [width, scheme] of [[1280, "light"], [390, "dark"]])
      results.push(await look(browser, page, width, scheme));
  await browser.close();
  console.log(JSON.stringify(results));
})();

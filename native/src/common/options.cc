#include "common/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace hydra {
namespace {

constexpr int kExitUsage = 2;

// Digits only: the library's own conversion takes more than that for a number.
CLI::Validator whole(std::uint64_t least, std::uint64_t most) {
    return CLI::Validator(
        [least, most](std::string& text) -> std::string {
            std::uint64_t value = 0;
            const char* end = text.data() + text.size();
            const auto [stopped, error] = std::from_chars(text.data(), end, value);
            if (error == std::errc() && stopped == end && value >= least && value <= most) {
                return "";
            }
            return "'" + text + "' is no whole number from " + std::to_string(least) + " to " +
                   std::to_string(most);
        },
        "N");
}

[[noreturn]] void usage(const std::string& message) {
    std::fprintf(stderr, "hydra-client: %s; see --help\n", message.c_str());
    std::exit(kExitUsage);
}

std::string first_line(std::string text) {
    return text.substr(0, text.find('\n'));
}

}  // namespace

Options parse_options(int argc, char** argv, const std::vector<std::string>& kinds) {
    constexpr std::uint64_t most = UINT32_MAX;
    constexpr std::uint64_t largest_int = INT32_MAX;
    Options options;
    std::string transport = "tcp";
    std::string pacing = "smooth";
    CLI::App app("A group of Hydra clients; started by hydra on an agent.", "hydra-client");
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    app.add_option("kind", options.kind)->required()->check(CLI::IsMember(kinds));
    app.add_option("--group", options.group, "the group's id")->required();
    app.add_option("--first-id", options.first_id, "id of its first client")
        ->required()
        ->check(whole(0, most));
    app.add_option("--count", options.count, "clients to fork")->required()->check(whole(1, most));
    app.add_option("--fork-window", options.fork_window, "clients forked and not yet welcomed")
        ->check(whole(1, most));
    app.add_option("--respawns", options.respawns, "how often one client is replaced")->check(whole(0, most));
    app.add_option("--clients-per-process", options.clients_per_process,
                   "subscribers packed into one process")
        ->check(whole(1, most));
    app.add_option("--pacing", pacing, "bursty: each second's messages at its start")
        ->check(CLI::IsMember(std::vector<std::string>{"smooth", "bursty"}));
    app.add_option("--io-threads", options.data.io_threads, "libzmq's threads for input and output")
        ->check(whole(1, 64));
    app.add_option("--sndbuf", options.data.sndbuf_bytes, "bytes of the kernel's send buffer")
        ->check(whole(0, largest_int));
    app.add_option("--rcvbuf", options.data.rcvbuf_bytes, "bytes of the kernel's receive buffer")
        ->check(whole(0, largest_int));
    app.add_option("--transport", transport, "of the data plane")
        ->check(CLI::IsMember(std::vector<std::string>{"tcp", "ipc"}));
    app.add_flag("--secure", options.data.secure,
                 "CURVE on the data plane; see native/README.md for its keys");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::fputs(app.help().c_str(), stdout);
        std::exit(0);
    } catch (const CLI::Error& e) {
        usage(first_line(e.what()));
    }
    // Where they mean nothing they are no small matter: --secure would be taken for what it says.
    for (const std::string name : {"--io-threads", "--sndbuf", "--rcvbuf", "--transport", "--secure"}) {
        if (app.count(name) > 0 && !options.kind.starts_with("zmq-")) {
            usage(name + " is of the kinds zmq-pub and zmq-sub, not of " + options.kind);
        }
    }
    if (options.group.size() > kMaxTextCharacters) {
        usage("--group is longer than 4096 characters");
    }
    if (options.count - 1 > UINT32_MAX - options.first_id) {
        usage("the last id, --first-id + --count - 1, is above 4294967295");
    }
    if (options.clients_per_process > 1 && !options.kind.ends_with("-sub")) {
        usage("--clients-per-process packs subscribers only");
    }
    options.pacing = pacing == "bursty" ? Pacing::bursty : Pacing::smooth;
    options.data.ipc = transport == "ipc";
    return options;
}

}  // namespace hydra

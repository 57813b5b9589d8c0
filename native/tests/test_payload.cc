#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/payload.h"
#include "common/transport.h"
#include "vectors.h"

using namespace hydra;
using nlohmann::json;

namespace {

// A file with this text; the destructor removes it.
class File {
  public:
    explicit File(const std::string& text)
        : path_(std::filesystem::temp_directory_path() / ("hydra-lines-" + std::to_string(getpid()))) {
        std::ofstream(path_, std::ios::binary) << text;
    }
    ~File() { std::filesystem::remove(path_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    [[nodiscard]] std::string name() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

Configure configure(Payload payload, std::uint64_t size,
                    std::optional<std::uint64_t> smallest = std::nullopt) {
    Configure it;
    it.settings.payload = payload;
    it.settings.message_size = size;
    it.settings.message_size_min = smallest;
    return it;
}

std::string hex(std::span<const char> bytes) {
    std::string text;
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        text += "0123456789abcdef"[value >> 4];
        text += "0123456789abcdef"[value & 15];
    }
    return text;
}

Traffic sizes_of(const json& value) {
    Traffic it{.seed = value["seed"]};
    for (const json& range : value["sizes"]) {
        it.sizes.push_back({range[0], range[1]});
    }
    for (const json& slot : value["size_table"]) {
        it.size_table.push_back({slot[0], slot[1]});
    }
    return it;
}

void payload(const json& it) {
    const File lines(it["lines"].get<std::string>());
    Configure command;
    Settings& settings = command.settings;
    settings.message_size = it["message_size"];
    if (!it["message_size_min"].is_null()) {
        settings.message_size_min = it["message_size_min"].get<std::uint64_t>();
    }
    const std::string kind = it["payload"];
    const auto kinds = words(Payload{});
    settings.payload = static_cast<Payload>(std::ranges::find(kinds, kind) - kinds.begin());
    settings.payload_seed = it["payload_seed"];
    settings.payload_file = lines.name();
    command.payload_share = it["share"];
    PayloadBlock block;
    block.set(command, 4096);
    std::optional<PublisherTraffic> traffic;
    if (it.contains("traffic")) {
        traffic.emplace(std::make_shared<const Traffic>(sizes_of(it["traffic"])), it["publisher"]);
    }
    const PublisherTraffic* const sized = traffic ? &*traffic : nullptr;
    json messages = json::array();
    PayloadBlock::Rooms rooms = block.from(0, sized);
    for (std::size_t i = 0; i < it["messages"].size(); ++i) {
        messages.push_back(hex(rooms.next().subspan(kHeaderBytes)));
    }
    CHECK(messages == it["messages"]);
    json bytes = json::array();
    for (std::uint64_t i = 0; i < it["bytes"].size(); ++i) {
        bytes.push_back(block.total_bytes(i, [](std::uint64_t size) { return size; }, sized));
    }
    CHECK(bytes == it["bytes"]);
}

std::string reason_unread(const std::string& name) {
    Configure command = configure(Payload::lines, 100);
    command.settings.payload_file = name;
    PayloadBlock block;
    try {
        block.set(command, 4096);
    } catch (const TransportError& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("the payload's vectors") {
    for_each_vector("payload", payload);
}

TEST_CASE("the spaces repeat after the last one, wherever the first is") {
    PayloadBlock block;
    block.set(configure(Payload::random, 1000, 30), 10'000);
    CHECK(block.messages() >= 64);
    std::set<const char*> seen;
    PayloadBlock::Rooms rooms = block.from(0);
    for (std::uint64_t i = 0; i < 2 * block.messages(); ++i) {
        const std::span<char> room = rooms.next();
        seen.insert(room.data());
        const std::span<char> same = block.from(i).next();
        CHECK(room.data() == same.data());
        CHECK(room.size() == same.size());
        CHECK(room.size() == block.total_bytes(i + 1) - block.total_bytes(i));
    }
    CHECK(seen.size() == block.messages());
    CHECK(block.total_bytes(7, [](std::uint64_t) { return 3; }) == 21);
}

TEST_CASE("zeros of one size are as many as are handed over at a time, and few where they are long") {
    struct Case {
        std::uint64_t size;
        std::uint64_t messages;
    };
    PayloadBlock block;
    for (const Case& it :
         {Case{24, 64}, Case{100, 64}, Case{1000, 16}, Case{10'000, 1}, Case{5'000'000, 1}}) {
        CAPTURE(it.size);
        block.set(configure(Payload::random, it.size), 4096);  // earlier content of the block
        block.set(configure(Payload::zeros, it.size), 1024 * 1024);
        CHECK(block.messages() == it.messages);
        CHECK(block.zeros());
        const std::span<char> room = block.from(3).next();
        CHECK(room.size() == it.size);
        CHECK(std::all_of(room.begin(), room.end(), [](char byte) { return byte == 0; }));
    }
}

TEST_CASE("random messages differ, and a block is as long as was asked for") {
    PayloadBlock block;
    block.set(configure(Payload::random, 1000), 100'000);
    CHECK(block.messages() == 100);
    std::set<std::string> seen;
    PayloadBlock::Rooms rooms = block.from(0);
    for (std::uint64_t i = 0; i < block.messages(); ++i) {
        seen.insert(hex(rooms.next()));
    }
    CHECK(seen.size() == 100);
    block.set(configure(Payload::random, 5'000'001), 1'000'000);
    CHECK(block.messages() == 1);
    const std::span<char> room = block.from(9).next();
    CHECK(std::count(room.begin(), room.end(), 0) < 50'000);
}

TEST_CASE("a file without lines is refused") {
    const File empty("");
    CHECK(reason_unread(empty.name()) ==
          "payload_file " + empty.name() + " is empty; it needs a line for each message");
    CHECK(reason_unread("/nowhere/lines") ==
          "cannot read payload_file /nowhere/lines: No such file or directory");
    CHECK(reason_unread("/tmp") == "payload_file /tmp is no regular file");
}

TEST_CASE("a file is taken up to its limit, in whole lines") {
    std::string text;
    while (text.size() < 17U * 1024 * 1024) {
        text += "a line of thirty-six characters: " + std::to_string(100 + text.size() % 900) + "\n";
    }
    const File file(text);
    Configure command = configure(Payload::lines, 1000);
    command.settings.payload_file = file.name();
    PayloadBlock block;
    block.set(command, 4096);
    CHECK(block.messages() == 16 * 1024 * 1024 / 60);
    CHECK(block.total_bytes(block.messages()) == block.messages() * 60);
}
